#include "core/rendezvous/link_probes.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/plan/link_speeds.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kSingles = 6;
constexpr std::size_t kRows = 2;
constexpr std::size_t kRowLength = 8;
static_assert(kSingles + kRows * kRowLength == LinkProbes::kProbesPerPeer);
// Where speeds are measured. The fastest of many rows counts, since on a busy machine most take longer than the link needs. A row is
// several times longer than what a shaped link lets through at once after a pause.
constexpr std::size_t kLongRows = 10;
constexpr std::size_t kLongRowLength = 38;
static_assert(kSingles + kLongRows * kLongRowLength + 1 == LinkProbes::kProbesForSpeed);
// After this time, a slow link is known well enough.
constexpr std::int64_t kRowsNs = 200'000'000;
constexpr double kDearest = 1e15;  // beyond any link

std::uint64_t at_least_one(double value) { return static_cast<std::uint64_t>(std::max(value, 1.0)); }

int next_native(const WorldOptions& options) {
  return options.measures_speeds() && !options.is_guest(options.rank) ? (options.rank + 1) % options.natives() : -1;
}

/// Too few ranks at the end do not begin a turn of their own, since it would soon be at rank 0, where the first turn is.
bool begins(int rank, int natives) { return rank == 0 || (rank % LinkProbes::kTurns == 0 && natives - rank >= LinkProbes::kTurns); }

}  // namespace

std::vector<int> peers_to_probe(const WorldOptions& options) {
  const int natives = options.natives();
  std::vector<int> peers;
  if ((options.guests == 0 && !options.measures_speeds()) || options.rank >= natives) return peers;
  if (options.measures_speeds()) peers.push_back((options.rank + 2) % natives);
  if (natives > 1) peers.push_back((options.rank + 1) % natives);
  for (int guest = natives; guest < options.size; ++guest)
    if (guest % natives == options.rank) peers.push_back(guest);
  return peers;
}

LinkProbes::LinkProbes(EventLoop& loop, const WorldOptions& options, Send send, std::function<bool(int peer)> stays_here,
                       std::function<void(const Measured&)> on_done)
    : loop_(loop),
      peers_(peers_to_probe(options)),
      natives_(options.natives()),
      next_(next_native(options)),
      second_(next_ < 0 ? -1 : (options.rank + 2) % natives_),
      before_(next_ < 0 ? -1 : (options.rank + natives_ - 1) % natives_),
      has_guests_(options.guests > 0),
      send_(std::move(send)),
      stays_here_(std::move(stays_here)),
      on_done_(std::move(on_done)),
      has_turn_(next_ < 0 || begins(options.rank, natives_)) {}

void LinkProbes::start() {
  started_ = true;
  if (peers_.empty()) return on_done_(measured_);
  if (has_turn_) begin_peer();
}

void LinkProbes::on_probe(int from, const wire::LinkProbe& probe) {
  const bool gives_turn = from == before_ && probe.number >= kSingles && probe.padding.empty();
  if (!gives_turn || std::exchange(has_turn_, true) || !started_) return;
  begin_peer();
}

void LinkProbes::begin_peer() {
  if (peers_[peer_] == second_ && stays_here_(second_)) ++peer_;
  measures_speed_ = next_ >= 0 && peers_[peer_] < natives_ && !stays_here_(peers_[peer_]);
  // Without guests, what a link inside of a machine costs is not asked: only the turn is passed on.
  if (to_next() && !measures_speed_ && !has_guests_) {
    round_ = kSingles + rows();
    sent_ = answered_ = kSingles;
  }
  begin_round();
}

std::size_t LinkProbes::rows() const { return measures_speed_ ? kLongRows : kRows; }
std::size_t LinkProbes::row_length() const { return measures_speed_ ? kLongRowLength : kRowLength; }
bool LinkProbes::is_row(std::size_t round) const { return round >= kSingles && round < kSingles + rows(); }

void LinkProbes::begin_round() {
  const std::string padding(is_row(round_) ? kMaxPadding : 0, '\0');
  round_began_ = loop_.now();
  const std::size_t length = is_row(round_) ? row_length() : 1;
  for (std::size_t i = 0; i < length; ++i) send_(peers_[peer_], wire::LinkProbe{sent_++, false, padding});
}

bool LinkProbes::on_answer(int from, const wire::LinkProbe& answer) {
  if (answered_ == sent_ || from != peers_[peer_] || answer.number != answered_) return false;
  if (++answered_ == sent_) end_round((loop_.now() - round_began_).nanoseconds);
  return true;
}

void LinkProbes::end_round(std::int64_t took_ns) {
  const std::size_t end_of_rows = kSingles + rows();
  if (round_ < end_of_rows) {
    std::int64_t& fastest = is_row(round_) ? row_ns_ : single_ns_;
    const bool after_warm_up = measures_speed_ && round_ == kSingles + 1;
    const bool is_first = round_ == 0 || round_ == kSingles || after_warm_up;
    fastest = is_first ? took_ns : std::min(fastest, took_ns);
    if (round_ == kSingles) rows_began_ = round_began_;
    const bool has_taken_long = is_row(round_) && (loop_.now() - rows_began_).nanoseconds > kRowsNs;
    if (measures_speed_ && has_taken_long) round_ = end_of_rows - 1;
  }
  ++round_;
  if (round_ < end_of_rows || (round_ == end_of_rows && to_next())) return begin_round();
  end_peer();
  if (peer_ < peers_.size()) return begin_peer();
  on_done_(measured_);
}

void LinkProbes::end_peer() {
  const bool was_measured = row_ns_ > 0;
  const std::uint64_t latency = at_least_one(static_cast<double>(single_ns_) / 2);
  // The bytes travel in both directions at the same time.
  const double row_bytes = static_cast<double>(row_length() * kMaxPadding);
  const std::uint64_t per_byte = at_least_one(static_cast<double>(row_ns_ - single_ns_) * kPicosecondsPerNanosecond / row_bytes);
  const bool guest = peers_[peer_] >= natives_;
  if (was_measured)
    measured_.dearest =
        dearer(measured_.dearest, guest ? wire::LinkCosts{0, 0, latency, per_byte} : wire::LinkCosts{latency, per_byte, 0, 0});
  if (measures_speed_) (to_next() ? measured_.next_byte_ps : measured_.second_byte_ps) = per_byte;
  ++peer_;
  round_ = 0;
  sent_ = answered_ = 0;
  row_ns_ = 0;
}

wire::LinkCosts dearer(const wire::LinkCosts& one, const wire::LinkCosts& other) {
  return {std::max(one.native_latency_ns, other.native_latency_ns), std::max(one.native_byte_ps, other.native_byte_ps),
          std::max(one.guest_latency_ns, other.guest_latency_ns), std::max(one.guest_byte_ps, other.guest_byte_ps)};
}

std::vector<std::uint32_t> speeds_of(const MeasuredCosts& measured) {
  const std::size_t natives = std::max(measured.next_byte_ps.size(), measured.second_byte_ps.size());
  std::vector<std::uint64_t> costs(natives);  // 0 means not measured
  const auto take = [&](const std::vector<std::uint64_t>& by_rank, std::size_t distance) {
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
      for (const std::size_t end : {rank, (rank + distance) % natives})
        if (by_rank[rank] != 0 && (costs[end] == 0 || by_rank[rank] < costs[end])) costs[end] = by_rank[rank];
  };
  take(measured.next_byte_ps, 1);
  take(measured.second_byte_ps, 2);
  std::vector<std::uint32_t> speeds;
  for (const double slower : slowness_of(costs)) {
    const double halves = slower < kEquallyFast ? 0 : std::max(std::round(2 * std::log2(slower)), 1.0);
    speeds.push_back(static_cast<std::uint32_t>(std::max(std::round(kFullSpeed * std::exp2(-halves / 2)), 1.0)));
  }
  const bool differ = std::any_of(speeds.begin(), speeds.end(), [](std::uint32_t speed) { return speed != kFullSpeed; });
  return differ ? speeds : std::vector<std::uint32_t>{};
}

wire::Begin placement_of(const wire::LinkCosts& dearest, const WorldOptions& own, const MeasuredCosts& measured) {
  const auto announced = [](std::uint64_t found, double otherwise) {
    const double cost = found == 0 ? otherwise : std::exp2(std::round(std::log2(static_cast<double>(found))));
    return static_cast<std::uint64_t>(std::min(cost, kDearest));
  };
  wire::Begin out;
  out.policy = static_cast<std::uint32_t>(own.placement.policy);
  out.order = static_cast<std::uint32_t>(own.placement.order);
  out.parts = static_cast<std::uint32_t>(own.placement.parts);
  out.speeds = speeds_of(measured);
  out.costs.native_latency_ns = announced(dearest.native_latency_ns, own.placement.native.latency_ns);
  out.costs.native_byte_ps = announced(dearest.native_byte_ps, own.placement.native.ns_per_byte * kPicosecondsPerNanosecond);
  out.costs.guest_latency_ns = announced(dearest.guest_latency_ns, own.placement.guest.latency_ns);
  out.costs.guest_byte_ps = announced(dearest.guest_byte_ps, own.placement.guest.ns_per_byte * kPicosecondsPerNanosecond);
  if (!out.speeds.empty()) {
    // Estimates multiply the cost of the fastest links by what slower ones take more.
    out.costs.native_byte_ps = static_cast<std::uint64_t>(kDearest);
    for (const std::uint64_t cost : measured.next_byte_ps)
      if (cost != 0) out.costs.native_byte_ps = std::min(out.costs.native_byte_ps, announced(cost, 0));
    out.speeds.resize(static_cast<std::size_t>(own.size), kFullSpeed);
  }
  out.exchange_bytes = own.limits.exchange_bytes;
  out.direct_bytes = own.limits.direct_bytes;
  return out;
}

Status take_placement(const wire::Begin& announced, World& world) {
  if (announced.policy >= kPlacementPolicyCount)
    return {Errc::protocol_error, "rank 0 announced the unknown placement number " + std::to_string(announced.policy), 0};
  if (announced.order >= kReduceOrderCount)
    return {Errc::protocol_error, "rank 0 announced the unknown order number " + std::to_string(announced.order), 0};
  const auto natives = static_cast<std::uint32_t>(world.options().natives());
  std::vector<int> machines(announced.machines.begin(), announced.machines.end());
  const bool is_known = std::all_of(announced.machines.begin(), announced.machines.end(), [&](std::uint32_t one) { return one < natives; });
  if (!is_known || (!machines.empty() && machines.size() != natives))
    return {Errc::protocol_error, "rank 0 announced machines that do not fit " + std::to_string(natives) + " native ranks", 0};
  for (int guest = world.options().natives(); !machines.empty() && guest < world.options().size; ++guest) machines.push_back(guest);
  if (announced.parts >= kPartsPolicyCount)
    return {Errc::protocol_error, "rank 0 announced the unknown parts number " + std::to_string(announced.parts), 0};
  const auto is_speed = [](std::uint32_t speed) { return speed >= 1 && speed <= kFullSpeed; };
  const bool fits = announced.speeds.empty() || announced.speeds.size() == static_cast<std::size_t>(world.options().size);
  if (!fits || !std::all_of(announced.speeds.begin(), announced.speeds.end(), is_speed))
    return {Errc::protocol_error,
            "rank 0 announced " + std::to_string(announced.speeds.size()) + " speeds for " + std::to_string(world.options().size) +
                " ranks, or one that is not from 1 to " + std::to_string(kFullSpeed),
            0};
  const auto policy = static_cast<PlacementPolicy>(announced.policy);
  const auto cost = [](std::uint64_t latency_ns, std::uint64_t byte_ps) {
    return LinkCost{static_cast<double>(latency_ns), static_cast<double>(byte_ps) / kPicosecondsPerNanosecond};
  };
  const auto bytes = [](std::uint64_t limit) { return static_cast<std::size_t>(std::min<std::uint64_t>(limit, SIZE_MAX)); };
  const wire::LinkCosts& costs = announced.costs;
  AgreedPlacement agreed;
  agreed.placement = {policy, cost(costs.native_latency_ns, costs.native_byte_ps), cost(costs.guest_latency_ns, costs.guest_byte_ps),
                      static_cast<ReduceOrder>(announced.order), static_cast<PartsPolicy>(announced.parts)};
  agreed.limits = {bytes(announced.exchange_bytes), bytes(announced.direct_bytes)};
  agreed.machines = machines;
  agreed.speeds = announced.speeds;
  world.set_placement(agreed);
  return {};
}

}  // namespace ringlet
