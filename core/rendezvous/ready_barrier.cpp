#include "core/rendezvous/ready_barrier.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/rank_text.hpp"
#include "core/rendezvous/endpoints.hpp"

namespace ringlet {

ReadyBarrier::ReadyBarrier(EventLoop& loop, World& world, const Address& door, std::function<void()> on_passed)
    : world_(world),
      on_passed_(std::move(on_passed)),
      probes_(
          loop, world.options(), [this](int peer, const wire::LinkProbe& probe) { world_.send_control(peer, probe); },
          [this](int peer) { return stays_here(peer); },
          [this, own_door = wire::Endpoint{door.host, door.port}](const LinkProbes::Measured& measured) {
            wire::Ready ready{measured.dearest, own_door, 0, measured.next_byte_ps, measured.second_byte_ps};
            if (!world_.options().is_guest(rank())) ready.machine = static_cast<std::uint32_t>(own_machine()) + 1;
            rank() == 0 ? on_ready(0, ready) : world_.send_control(0, ready);
          }),
      ready_(static_cast<std::size_t>(world.options().size)),
      unmet_(ready_.size()),
      doors_(static_cast<std::size_t>(world.options().natives())),
      machines_(doors_.size()),
      measured_{std::vector<std::uint64_t>(doors_.size()), std::vector<std::uint64_t>(doors_.size())} {}

void ReadyBarrier::enter() {
  entered_ = true;
  probes_.start();
}

bool ReadyBarrier::on_control(int from, const wire::ControlMessage& message) {
  if (const auto* probe = std::get_if<wire::LinkProbe>(&message)) return on_probe(from, *probe);
  if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    if (rank() != 0 || ready_[static_cast<std::size_t>(from)]) return false;
    on_ready(from, *ready);
    return true;
  }
  if (const auto* unmet = std::get_if<wire::Unmet>(&message)) {
    if (rank() != 0 || ready_[static_cast<std::size_t>(from)]) return false;
    auto& ranks = unmet_[static_cast<std::size_t>(from)].emplace();
    for (const std::uint32_t other : unmet->ranks)
      if (other < ready_.size() && static_cast<int>(other) != from) ranks.push_back(static_cast<int>(other));
    return true;
  }
  if (const auto* begin = std::get_if<wire::Begin>(&message)) {
    if (from != 0 || !entered_) return false;
    on_begin(*begin);
    return true;
  }
  return false;
}

bool ReadyBarrier::on_probe(int from, const wire::LinkProbe& probe) {
  if (probe.answer) return probes_.on_answer(from, probe);
  const std::size_t for_speed = world_.options().measures_speeds() ? 2 * LinkProbes::kProbesForSpeed : 0;
  const std::size_t most = LinkProbes::kProbesPerPeer * static_cast<std::size_t>(world_.options().size) + for_speed;
  if (world_.options().is_guest(from) || probe.padding.size() > LinkProbes::kMaxPadding || ++probes_answered_ > most) return false;
  world_.send_control(from, wire::LinkProbe{probe.number, true, probe.padding});
  probes_.on_probe(from, probe);
  return true;
}

void ReadyBarrier::on_ready(int from, const wire::Ready& ready) {
  ready_[static_cast<std::size_t>(from)] = true;
  dearest_ = dearer(dearest_, ready.measured);
  // What else an endpoint may say is not passed on, since it has no bound.
  if (!world_.options().is_guest(from) && is_dialable(ready.door))
    doors_[static_cast<std::size_t>(from)] = {ready.door.host, ready.door.port};
  if (!world_.options().is_guest(from)) {
    const auto native = static_cast<std::size_t>(from);
    machines_[native] = ready.machine;
    measured_.next_byte_ps[native] = ready.next_byte_ps;
    measured_.second_byte_ps[native] = ready.second_byte_ps;
  }
  if (awaited().empty()) announce(placement_of(dearest_, world_.options(), measured_));
}

bool ReadyBarrier::stays_here(int peer) const {
  const LinkReport link = world_.link_with(peer);
  return is_inside_machine(link.medium, link.own_name, link.peer_name);
}

int ReadyBarrier::own_machine() const {
  for (int peer = 0; peer < std::min(rank(), world_.options().natives()); ++peer)
    if (stays_here(peer)) return peer;
  return rank();
}

std::vector<std::uint32_t> ReadyBarrier::machines() const {
  std::vector<std::uint32_t> lowest;
  for (std::size_t native = 0; native < machines_.size(); ++native) {
    const std::uint32_t said = machines_[native];
    if (said == 0 || said > native + 1) return {};
    // Two ranks may see each other where a third one does not see the first.
    lowest.push_back(said == native + 1 ? said - 1 : lowest[said - 1]);
  }
  return lowest;
}

void ReadyBarrier::announce(const wire::Begin& placement) {
  const WorldOptions& own = world_.options();
  wire::Begin begin = placement;
  begin.machines = machines();
  begin.job = own.job;
  if (own.elastic) begin.doors = std::move(doors_);
  for (int peer = 1; peer < own.size; ++peer) world_.send_control(peer, begin);
  on_begin(begin);
}

void ReadyBarrier::on_begin(const wire::Begin& begin) {
  if (Status status = take_placement(begin, world_); !status.ok()) return world_.fail(status);
  world_.set_job(begin.job);
  for (int peer = 0; peer < world_.options().natives() && static_cast<std::size_t>(peer) < begin.doors.size(); ++peer)
    if (const wire::Endpoint& door = begin.doors[static_cast<std::size_t>(peer)]; is_dialable(door))
      world_.set_door(peer, {door.host, static_cast<std::uint16_t>(door.port)});
  on_passed_();
}

std::vector<int> ReadyBarrier::awaited() const {
  std::vector<int> ranks;
  for (std::size_t peer = 0; peer < ready_.size(); ++peer)
    if (!ready_[peer]) ranks.push_back(static_cast<int>(peer));
  return ranks;
}

std::string ReadyBarrier::awaited_text() const {
  std::string text;
  const std::vector<int> all = awaited();
  for (const int late : std::span(all).first(std::min(all.size(), kMostNamed))) {
    const auto& unmet = unmet_[static_cast<std::size_t>(late)];
    text += (text.empty() ? "" : ", ") + rank_text(static_cast<std::uint64_t>(late)) +
            (!unmet           ? " (says nothing)"
             : unmet->empty() ? " (has met all others)"
                              : " (has not met " + ranks_text(*unmet) + ")");
  }
  return text + more_text(all.size());
}

int ReadyBarrier::latest() const {
  std::vector<int> missed_by(ready_.size());
  for (const auto& unmet : unmet_)
    if (unmet)
      for (const int rank : *unmet) ++missed_by[static_cast<std::size_t>(rank)];
  const auto lateness = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    return std::pair(missed_by[index], !unmet_[index]);
  };
  const std::vector<int> late = awaited();
  const auto latest = std::max_element(late.begin(), late.end(), [&](int one, int other) { return lateness(one) < lateness(other); });
  if (latest == late.end()) return -1;
  const bool is_clear = std::count_if(late.begin(), late.end(), [&](int rank) { return lateness(rank) == lateness(*latest); }) == 1;
  return is_clear ? *latest : -1;
}

}  // namespace ringlet
