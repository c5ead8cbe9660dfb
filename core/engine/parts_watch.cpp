#include "core/engine/parts_watch.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

namespace {

constexpr int kLongestWait = 64;  // windows

std::vector<std::uint32_t> first_of(const std::vector<std::uint32_t>& speeds, int natives) {
  return {speeds.begin(), speeds.begin() + natives};
}

}  // namespace

PartsWatch::PartsWatch(EventLoop& loop, World& world, std::function<void(const std::string&)> tell, const PartsWatchOptions& options)
    : loop_(loop),
      world_(world),
      tell_(std::move(tell)),
      options_(options),
      natives_(world.options().natives()),
      peers_(static_cast<std::size_t>(natives_)),
      looked_at_(loop.now()),
      window_began_(loop.now()) {
  for (int rank = 0; rank < natives_; ++rank) {
    if (!world.has_session(rank)) continue;
    const LinkReport link = world.link_with(rank);
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.is_watched = !is_inside_machine(link.medium, link.own_name, link.peer_name);
    is_watching_ |= peer.is_watched;
    peer.last = world.send_counters(rank).value_or(SendCounters{});
  }
  if (world.options().rank == 0) {
    measured_.resize(peers_.size() * peers_.size());
    record_.emplace(first_of(world.parts().in_use(), natives_));
    world.parts().set_rates_handler(guard_.wrap([this](int from, const wire::LinkRates& rates) { on_rates(from, rates); }));
    set_text({});
  }
  schedule(options_.look);
}

PartsWatch::~PartsWatch() {
  if (timer_ != 0) loop_.cancel(timer_);
}

void PartsWatch::schedule(Duration after) {
  timer_ = loop_.after(after, [this] {
    timer_ = 0;
    if (world_.failure().ok()) tick();
  });
}

void PartsWatch::tick() {
  if (record_ && wait_ == 0) take_inherited();
  look();
  if (loop_.now() - window_began_ >= options_.window) end_window();
  // Rank 0 hears of links that others watch.
  if (is_watching_ || record_) schedule(is_watching_ ? options_.look : options_.window);
}

void PartsWatch::take_inherited() {
  const auto inherited = world_.parts().inherited();
  if (inherited.empty() || inherited == world_.parts().in_use()) return;
  wait_ = 1;
  change(inherited, {});
}

void PartsWatch::look() {
  SendCounters all;
  for (int rank = 0; rank < natives_; ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    const auto now = peer.is_watched ? world_.send_counters(rank) : std::nullopt;
    if (!now) continue;
    const SendCounters since{now->bytes - peer.last.bytes, now->busy_ns - peer.last.busy_ns};
    peer.last = *now;
    add(peer, since);
    all.bytes += since.bytes;
    all.busy_ns += since.busy_ns;
  }
  // The time in which any link was busy is not longer than this.
  const auto passed_ns = static_cast<std::uint64_t>((loop_.now() - std::exchange(looked_at_, loop_.now())).nanoseconds);
  all.busy_ns = std::min(all.busy_ns, passed_ns);
  add(peers_[static_cast<std::size_t>(world_.options().rank)], all);
}

void PartsWatch::add(Peer& peer, const SendCounters& since_last_look) const {
  peer.stretch.bytes += since_last_look.bytes;
  peer.stretch.busy_ns += since_last_look.busy_ns;
  const auto least_busy_ns = static_cast<std::uint64_t>(options_.stretch_busy.nanoseconds);
  if (peer.stretch.bytes < options_.stretch_bytes || peer.stretch.busy_ns < least_busy_ns) return;
  const std::uint64_t cost =
      std::max<std::uint64_t>(peer.stretch.busy_ns * std::uint64_t{kPicosecondsPerNanosecond} / peer.stretch.bytes, 1);
  const auto bounded = static_cast<std::uint32_t>(std::min<std::uint64_t>(cost, UINT32_MAX));
  if (peer.fastest_ps == 0 || bounded < peer.fastest_ps) peer.fastest_ps = bounded;
  peer.stretch = {};
}

void PartsWatch::end_window() {
  window_began_ = loop_.now();
  if (wait_ > 0) --wait_;
  wire::LinkRates rates;
  for (Peer& peer : peers_) rates.byte_ps.push_back(std::exchange(peer.fastest_ps, 0));
  const bool knows_any = std::any_of(rates.byte_ps.begin(), rates.byte_ps.end(), [](std::uint32_t cost) { return cost != 0; });
  if (!record_ && knows_any && !world_.has_left_world(0)) world_.send_control(0, rates);
  if (!record_) return;
  on_rates(0, rates);
  judge();
}

void PartsWatch::on_rates(int from, const wire::LinkRates& rates) {
  const auto count = static_cast<std::size_t>(natives_);
  if (from >= natives_ || rates.byte_ps.size() > count) return;
  for (std::size_t to = 0; to < rates.byte_ps.size(); ++to) {
    std::uint64_t& known = measured_[static_cast<std::size_t>(from) * count + to];
    // Two reports of a rank may come in one window of this one.
    if (rates.byte_ps[to] != 0 && (known == 0 || rates.byte_ps[to] < known)) known = rates.byte_ps[to];
  }
}

void PartsWatch::judge() {
  const std::vector<std::uint64_t> costs = costs_of_ranks(measured_, natives_);
  std::fill(measured_.begin(), measured_.end(), 0);
  auto proposal = record_->add(costs);
  if (!proposal || wait_ > 0) return;
  proposal->speeds.resize(static_cast<std::size_t>(world_.options().size), kFullSpeed);
  change(proposal->speeds, std::move(proposal->changes));
}

void PartsWatch::change(const std::vector<std::uint32_t>& speeds, std::vector<SpeedChange> changes) {
  world_.parts().change(speeds, guard_.wrap([this, changes = std::move(changes)](bool changed) {
    record_->take(first_of(world_.parts().in_use(), natives_));
    // What was taken back has cost everybody the wait for an answer, so a rank that never gives one in time is asked more and more rarely.
    wait_ = changed ? 0 : next_wait_;
    next_wait_ = changed ? 1 : std::min(next_wait_ * 2, kLongestWait);
    if (!changed) return;
    set_text(changes);
    if (tell_ && !changes.empty()) tell_(describe_changes(changes, topology()) + exception());
  }));
}

Topology PartsWatch::topology() const {
  Topology topology = world_.options().topology;
  topology.set_speeds(world_.parts().in_use());
  return topology;
}

/// By unequal parts large sums would be added in another order than along a ring.
std::string PartsWatch::exception() const {
  const Placement& placement = world_.options().placement;
  const bool keeps_rings = placement.parts == PartsPolicy::passive && placement.order == ReduceOrder::any;
  return keeps_rings ? "; along a ring parts stay equal, unless all ranks have RINGLET_PARTS=measured" : "";
}

void PartsWatch::set_text(std::span<const SpeedChange> last) {
  std::string text = describe_speeds(world_.options().size, topology());
  if (!text.empty()) text += exception();
  if (!last.empty())
    text = (text.empty() ? "all ranks own equal parts" : text) + "; the last change: " + describe_changes(last, topology());
  world_.set_parts_text(std::move(text));
}

}  // namespace ringlet
