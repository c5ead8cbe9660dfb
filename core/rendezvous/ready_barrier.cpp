#include "core/rendezvous/ready_barrier.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

ReadyBarrier::ReadyBarrier(EventLoop& loop, World& world, std::function<void()> on_passed)
    : world_(world),
      on_passed_(std::move(on_passed)),
      probes_(
          loop, world.options(), [this](int peer, const wire::LinkProbe& probe) { world_.send_control(peer, probe); },
          [this](const wire::LinkCosts& measured) {
            if (rank() == 0) return on_ready(0, measured);
            world_.send_control(0, wire::Ready{measured});
          }),
      ready_(static_cast<std::size_t>(world.options().size)) {}

void ReadyBarrier::enter() {
  entered_ = true;
  probes_.start();
}

bool ReadyBarrier::on_control(int from, const wire::ControlMessage& message) {
  if (const auto* probe = std::get_if<wire::LinkProbe>(&message)) return on_probe(from, *probe);
  if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    if (rank() != 0 || ready_[static_cast<std::size_t>(from)]) return false;
    on_ready(from, ready->measured);
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
  const std::size_t most = LinkProbes::kProbesPerPeer * static_cast<std::size_t>(world_.options().size);
  if (world_.options().is_guest(from) || probe.padding.size() > LinkProbes::kMaxPadding || ++probes_answered_ > most) return false;
  world_.send_control(from, wire::LinkProbe{probe.number, true, probe.padding});
  return true;
}

void ReadyBarrier::on_ready(int from, const wire::LinkCosts& measured) {
  ready_[static_cast<std::size_t>(from)] = true;
  dearest_ = dearer(dearest_, measured);
  if (!awaited().empty()) return;
  const wire::Begin begin = placement_of(dearest_, world_.options());
  for (int peer = 1; peer < world_.options().size; ++peer) world_.send_control(peer, begin);
  on_begin(begin);
}

void ReadyBarrier::on_begin(const wire::Begin& begin) {
  if (Status status = take_placement(begin, world_); !status.ok()) return world_.fail(status);
  on_passed_();
}

std::vector<int> ReadyBarrier::awaited() const {
  std::vector<int> ranks;
  for (std::size_t peer = 0; peer < ready_.size(); ++peer)
    if (!ready_[peer]) ranks.push_back(static_cast<int>(peer));
  return ranks;
}

}  // namespace ringlet
