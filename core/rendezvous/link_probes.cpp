#include "core/rendezvous/link_probes.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace ringlet {

namespace {

constexpr std::size_t kSingles = 6;
constexpr std::size_t kRows = 2;
constexpr std::size_t kRowLength = 8;
static_assert(kSingles + kRows * kRowLength == LinkProbes::kProbesPerPeer);
constexpr double kRowBytes = kRowLength * LinkProbes::kMaxPadding;
constexpr double kPicoseconds = 1000;  // per nanosecond
constexpr double kDearest = 1e15;      // beyond any link

std::size_t length_of_round(std::size_t round) { return round < kSingles ? 1 : kRowLength; }

std::uint64_t at_least_one(double value) { return static_cast<std::uint64_t>(std::max(value, 1.0)); }

}  // namespace

std::vector<int> peers_to_probe(const WorldOptions& options) {
  const int natives = options.size - options.guests;
  std::vector<int> peers;
  if (options.guests == 0 || options.rank >= natives) return peers;
  if (natives > 1) peers.push_back((options.rank + 1) % natives);
  for (int guest = natives; guest < options.size; ++guest)
    if (guest % natives == options.rank) peers.push_back(guest);
  return peers;
}

LinkProbes::LinkProbes(EventLoop& loop, const WorldOptions& options, Send send, std::function<void(const wire::LinkCosts&)> on_done)
    : loop_(loop),
      peers_(peers_to_probe(options)),
      natives_(options.size - options.guests),
      send_(std::move(send)),
      on_done_(std::move(on_done)) {}

void LinkProbes::start() { peers_.empty() ? on_done_(costs_) : begin_round(); }

void LinkProbes::begin_round() {
  const std::string padding(round_ < kSingles ? 0 : kMaxPadding, '\0');
  round_began_ = loop_.now();
  for (std::size_t i = 0; i < length_of_round(round_); ++i) send_(peers_[peer_], wire::LinkProbe{sent_++, false, padding});
}

bool LinkProbes::on_answer(int from, const wire::LinkProbe& answer) {
  if (answered_ == sent_ || from != peers_[peer_] || answer.number != answered_) return false;
  if (++answered_ == sent_) end_round((loop_.now() - round_began_).nanoseconds);
  return true;
}

void LinkProbes::end_round(std::int64_t took_ns) {
  std::int64_t& fastest = round_ < kSingles ? single_ns_ : row_ns_;
  const bool first_of_sort = round_ == 0 || round_ == kSingles;
  fastest = first_of_sort ? took_ns : std::min(fastest, took_ns);
  if (++round_ == kSingles + kRows) end_peer();
  if (peer_ < peers_.size()) return begin_round();
  on_done_(costs_);
}

void LinkProbes::end_peer() {
  const std::uint64_t latency = at_least_one(static_cast<double>(single_ns_) / 2);
  // The bytes travel in both directions at the same time.
  const std::uint64_t per_byte = at_least_one(static_cast<double>(row_ns_ - single_ns_) * kPicoseconds / kRowBytes);
  const bool guest = peers_[peer_] >= natives_;
  costs_ = dearer(costs_, guest ? wire::LinkCosts{0, 0, latency, per_byte} : wire::LinkCosts{latency, per_byte, 0, 0});
  ++peer_;
  round_ = 0;
}

wire::LinkCosts dearer(const wire::LinkCosts& one, const wire::LinkCosts& other) {
  return {std::max(one.native_latency_ns, other.native_latency_ns), std::max(one.native_byte_ps, other.native_byte_ps),
          std::max(one.guest_latency_ns, other.guest_latency_ns), std::max(one.guest_byte_ps, other.guest_byte_ps)};
}

wire::Begin placement_of(const wire::LinkCosts& dearest, const WorldOptions& own) {
  const auto announced = [](std::uint64_t measured, double otherwise) {
    const double cost = measured == 0 ? otherwise : std::exp2(std::round(std::log2(static_cast<double>(measured))));
    return static_cast<std::uint64_t>(std::min(cost, kDearest));
  };
  wire::Begin out;
  out.policy = static_cast<std::uint32_t>(own.placement.policy);
  out.order = static_cast<std::uint32_t>(own.placement.order);
  out.costs.native_latency_ns = announced(dearest.native_latency_ns, own.placement.native.latency_ns);
  out.costs.native_byte_ps = announced(dearest.native_byte_ps, own.placement.native.ns_per_byte * kPicoseconds);
  out.costs.guest_latency_ns = announced(dearest.guest_latency_ns, own.placement.guest.latency_ns);
  out.costs.guest_byte_ps = announced(dearest.guest_byte_ps, own.placement.guest.ns_per_byte * kPicoseconds);
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
  const auto policy = static_cast<PlacementPolicy>(announced.policy);
  const auto cost = [](std::uint64_t latency_ns, std::uint64_t byte_ps) {
    return LinkCost{static_cast<double>(latency_ns), static_cast<double>(byte_ps) / kPicoseconds};
  };
  const auto bytes = [](std::uint64_t limit) { return static_cast<std::size_t>(std::min<std::uint64_t>(limit, SIZE_MAX)); };
  const wire::LinkCosts& costs = announced.costs;
  world.set_placement({policy, cost(costs.native_latency_ns, costs.native_byte_ps), cost(costs.guest_latency_ns, costs.guest_byte_ps),
                       static_cast<ReduceOrder>(announced.order)},
                      {bytes(announced.exchange_bytes), bytes(announced.direct_bytes)}, machines);
  return {};
}

}  // namespace ringlet
