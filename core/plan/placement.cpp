#include "core/plan/placement.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/rank_text.hpp"

namespace ringlet {

namespace {

constexpr std::array<std::string_view, kPlacementPolicyCount> kPolicyNames{"auto", "ring", "hub"};
constexpr std::array<std::string_view, kReduceOrderCount> kOrderNames{"any", "rank"};
constexpr std::array<std::string_view, kPartsPolicyCount> kPartsNames{"even", "measured", "passive"};

template <class Value, std::size_t count>
std::optional<Value> find_by_name(const std::array<std::string_view, count>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

/// The load that one call puts on the links of a group.
struct Load {
  // Of a native whose links are slower than others' by some factor, the bytes count as that many times more.
  double native_bytes = 0, guest_bytes = 0;  // bytes through the busiest native and guest, in its busier direction
  double native_hops = 0, guest_hops = 0;    // links that the last byte passes one after the other
};

/// The properties of a call and its group from which loads are computed.
struct CallLoad {
  CallLoad(const Call& call, std::size_t whole, int ranks, const Topology& topology)
      : size(ranks), guests(topology.guests()), natives(ranks - topology.guests()), bytes(static_cast<double>(whole)) {
    root_is_guest = topology.is_guest(call.root);
    relayed_edges = topology.relayed_edges();
    const double wanted = std::max(1.0, static_cast<double>(whole / std::max<std::size_t>(topology.leaf_limits().owned_bytes, 1)));
    owners = std::min(wanted, std::max(static_cast<double>(topology.owners(ranks)), 1.0));
    if (topology.has_speeds()) weigh(ranks, topology, wanted >= owners);
  }

  /// Computes what the busiest native sends by the hub, and how much slower the slowest native is than the fastest.
  void weigh(int ranks, const Topology& topology, bool weighted) {
    double total = 0;
    for (const std::uint32_t weight : topology.owner_weights()) total += weight;
    for (int rank = 0; rank < ranks; ++rank) {
      if (topology.is_guest(rank)) continue;
      const double slower = static_cast<double>(kFullSpeed) / topology.speed(rank);
      const int index = topology.index_among_owners(rank);
      double share = index >= 0 && index < owners ? 1 / owners : 0;
      if (weighted && index >= 0) share = topology.owner_weights()[static_cast<std::size_t>(index)] / total;
      slowest = std::max(slowest, slower);
      hub_load = std::max(hub_load, slower * (1 + (size - 2) * share));
    }
  }

  double others() const { return size - 1; }
  /// The bytes that each native relays if `between_guests` bytes pass between guests.
  double relayed(double between_guests) const { return natives > 0 ? between_guests / natives : 0; }
  /// The links between the two ranks that are furthest from each other, passed `times` times.
  Load furthest(double times) const { return {0, 0, guests == 0 ? times : 0, times * std::min(guests, 2.0)}; }
  /// All edges of the ring, passed `times` times.
  Load around(double times) const {
    const double crossing = 2 * (guests - relayed_edges);
    return {0, 0, times * (size - relayed_edges - crossing), times * (crossing + 2 * relayed_edges)};
  }
  /// The bytes that each native relays if every ordered pair of guests moves `bytes_each`.
  double relayed_pairs(double bytes_each) const { return relayed(guests * (guests - 1) * bytes_each); }

  double size, guests, natives;
  double bytes;
  double relayed_edges = 0, owners = 1;
  double slowest = 1;   // how much longer the slowest native takes for a byte than the fastest
  double hub_load = 0;  // of an all-reduce by owners of unequal speeds, in buffers; 0 if speeds do not differ
  bool root_is_guest = false;
};

Load with_bytes(Load hops, double native_bytes, double guest_bytes) {
  return {native_bytes, guest_bytes, hops.native_hops, hops.guest_hops};
}

/// Each rank sends `bytes_each` to every other, in `times` rounds.
Load all_pairs(const CallLoad& shape, double bytes_each, double times) {
  const double own = shape.others() * bytes_each * times;
  return with_bytes(shape.furthest(times), own + times * shape.relayed_pairs(bytes_each), own);
}

/// Every edge of the ring carries (size - 1) / size of the buffer `rounds` times.
Load ring(const CallLoad& shape, double rounds) {
  const double share = rounds * shape.others() / shape.size;
  const double edge = share * shape.bytes;
  return with_bytes(shape.around(share), edge + shape.relayed(shape.relayed_edges * edge), edge);
}

Load hub_all_reduce(const CallLoad& shape) {
  const double part = shape.bytes / shape.owners;
  const Load hops{0, 0, shape.guests == 0 ? 2.0 : 0.0, shape.guests == 0 ? 0.0 : 2.0};
  const double busiest = shape.hub_load > 0 ? shape.bytes * shape.hub_load : part * (shape.others() + shape.owners - 1);
  return with_bytes(hops, busiest, shape.bytes);
}

/// A broadcast and a reduce have the same load, in opposite directions.
Load hub_rooted(const CallLoad& shape) {
  const double part = shape.bytes / shape.owners;
  const Load hops{0, 0, shape.root_is_guest ? 0.0 : 1.0, shape.root_is_guest ? 2.0 : 1.0};
  return with_bytes(hops, part * (shape.others() + (shape.root_is_guest ? 0 : shape.owners - 1)), shape.bytes);
}

Load flat_rooted(const CallLoad& shape) {
  const double all = shape.others() * shape.bytes;
  const Load hops = shape.root_is_guest ? shape.furthest(1) : Load{0, 0, 0, 1};
  return shape.root_is_guest ? with_bytes(hops, shape.bytes + shape.relayed((shape.guests - 1) * shape.bytes), all)
                             : with_bytes(hops, all, shape.bytes);
}

Load chain(const CallLoad& shape) {
  return with_bytes(shape.around(shape.others() / shape.size), shape.bytes + shape.relayed(shape.relayed_edges * shape.bytes), shape.bytes);
}

/// Whether a whole buffer moves from or to a root (broadcast and reduce), not parts of it (gather and scatter).
bool is_rooted(CollectiveKind kind) { return traits_of(kind).has_root && !traits_of(kind).has_counts; }

/// Latencies within a machine count as nothing beside those of the network; the busiest rank is a lead without others on its machine.
Load by_machines(CollectiveKind kind, const CallLoad& shape, const Topology& topology) {
  const double machines = topology.machines();
  if (kind == CollectiveKind::all_reduce) return {2 * shape.bytes * (machines - 1) / machines, 0, 2, 0};
  if (is_rooted(kind)) return {(machines - 1) * shape.bytes, 0, 1, 0};
  std::size_t most = 0;
  for (int machine = 0; machine < topology.machines(); ++machine) most = std::max(most, topology.ranks_on(machine).size());
  return {(machines - 1) * shape.bytes * static_cast<double>(most) / shape.size, 0, 1, 0};
}

Load load_of(CollectiveKind kind, Algorithm algorithm, const CallLoad& shape, const Topology& topology) {
  const bool rooted = is_rooted(kind);
  const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  switch (algorithm) {
    case Algorithm::hub:
      return rooted ? hub_rooted(shape) : hub_all_reduce(shape);
    case Algorithm::ring:
      return rooted ? chain(shape) : ring(shape, rounds);
    case Algorithm::direct:
      return rooted ? flat_rooted(shape) : all_pairs(shape, shape.bytes / shape.size, rounds);
    case Algorithm::machines:
      return by_machines(kind, shape, topology);
    default:
      return all_pairs(shape, shape.bytes, 1);
  }
}

/// Whether the result may have other bits if the ranks' elements are combined in another order.
bool depends_on_order(const Call& call, int size) {
  if (!reduces(call.kind) || !is_floating(call.dtype) || !(call.op == ReduceOp::sum || call.op == ReduceOp::prod)) return false;
  // Two elements give the same either way round, but a ring rounds a narrow sum before it is divided.
  return size > 2 || (is_narrow(call.dtype) && call.divisor != 1.0);
}

/// Whether rounded partial sums of the call might overflow: a mean of f16 whose elements are not divided first (is_divided_first).
bool is_mean_that_overflows(const Call& call) {
  return call.divisor != 1.0 && is_divided_first(call.dtype) && call.kind != CollectiveKind::all_reduce;
}

/// Whether the call may not go along a ring, whose hops would each round blocks anew.
bool refuses_ring(const Call& call, int size, ReduceOrder order) {
  if (call.blocks) return true;
  if (order == ReduceOrder::rank && depends_on_order(call, size)) return true;
  return is_mean_that_overflows(call);
}

/// Computes what passes the busiest port of a machine in a collective of parts, in its busier direction, in rows. All are whole numbers, so
/// they are the same on every rank.
class PortRows {
 public:
  PortRows(const Call& call, int size, const Topology& topology) : call_(call), size_(size), topology_(topology) {
    for (int rank = 0; rank < size; ++rank) all_ += rows(rank);
  }

  double all() const { return all_; }
  double busiest(Algorithm algorithm) const {
    double busiest = 0;
    for (int machine = 0; machine < topology_.machines(); ++machine) {
      const std::vector<int>& ranks = topology_.ranks_on(machine);
      double own = 0;
      for (const int rank : ranks) own += rows(rank);
      const auto here = static_cast<double>(ranks.size());
      if (algorithm == Algorithm::machines)
        busiest = std::max({busiest, own * (topology_.machines() - 1), all_ - own});
      else if (algorithm == Algorithm::direct)
        busiest = std::max({busiest, own * (size_ - here), (all_ - own) * here});
      else
        busiest = std::max({busiest, over_edges(machine, 1), over_edges(machine, -1)});
    }
    return busiest;
  }

 private:
  double rows(int rank) const { return call_.counts.empty() ? 1.0 : static_cast<double>(call_.counts[static_cast<std::size_t>(rank)]); }
  /// What the ring's edges to ranks of other machines, or from them, carry: all parts but one.
  double over_edges(int machine, int direction) const {
    double sum = 0;
    for (const int rank : topology_.ranks_on(machine)) {
      const int other = topology_.along_ring(rank, direction, size_);
      if (topology_.machine_of(other) == machine) continue;
      const int from = direction > 0 ? rank : other, to = direction > 0 ? other : rank;
      sum += all_ - rows(call_.kind == CollectiveKind::all_gather ? to : from);
    }
    return sum;
  }

  const Call& call_;
  const int size_;
  const Topology& topology_;
  double all_ = 0;
};

/// Returns the bytes that going by machines spares the busiest machine's port, against `flat`, in a collective of one step or along a ring.
double spared_bytes(const Call& call, Algorithm flat, std::size_t bytes, int size, const Topology& topology) {
  const auto whole = static_cast<double>(bytes);
  if (call.kind == CollectiveKind::reduce) {
    // A chain to the root does as well, and needs less memory.
    if (flat != Algorithm::direct) return 0;
    const std::size_t beside_root = topology.ranks_on(topology.machine_of(call.root)).size();
    return (size - static_cast<double>(beside_root) - (topology.machines() - 1)) * whole;
  }
  const PortRows rows(call, size, topology);
  return rows.all() > 0 ? (rows.busiest(flat) - rows.busiest(Algorithm::machines)) * whole / rows.all() : 0;
}

/// Whether ranks of one machine go together. A machine's sum would change the order of additions, round blocks anew, and overflow where the
/// f16 of a mean are not divided first.
bool goes_by_machines(const Call& call, std::size_t bytes, int size, const Topology& topology, const AlgorithmLimits& limits,
                      const Placement& placement) {
  if (!kHasMachinePlans || !topology.has_shared_machines() || topology.has_guests() || call.blocks) return false;
  if (!facts_of(call.kind).algorithms.has(Algorithm::machines) || placement.policy != PlacementPolicy::automatic) return false;
  if (placement.order == ReduceOrder::rank && depends_on_order(call, size)) return false;
  if (call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast)
    return bytes > topology.machine_limits().least_bytes;
  if (is_mean_that_overflows(call)) return false;
  const Algorithm flat = choose_algorithm(call.kind, bytes, size, limits);
  return spared_bytes(call, flat, bytes, size, topology) > static_cast<double>(topology.machine_limits().spared_bytes);
}

/// Returns the algorithm for large buffers that adds in rank order. A reduce by the hub is shared out among all natives, while a direct one
/// would bring all contributions to the root.
Algorithm in_rank_order(CollectiveKind kind, bool has_natives) {
  return kind == CollectiveKind::reduce && has_natives ? Algorithm::hub : Algorithm::direct;
}

std::string milliseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, ns < 10e6 ? "%.1f ms" : "%.0f ms", ns / 1e6);
  return text;
}

std::string counted(int number, const char* one, const char* many) { return std::to_string(number) + " " + (number == 1 ? one : many); }

}  // namespace

std::string_view name_of(PlacementPolicy policy) noexcept { return kPolicyNames[static_cast<std::size_t>(policy)]; }

std::optional<PlacementPolicy> find_placement_policy(std::string_view name) noexcept {
  return find_by_name<PlacementPolicy>(kPolicyNames, name);
}

std::string_view name_of(ReduceOrder order) noexcept { return kOrderNames[static_cast<std::size_t>(order)]; }

std::optional<ReduceOrder> find_reduce_order(std::string_view name) noexcept { return find_by_name<ReduceOrder>(kOrderNames, name); }

std::string_view name_of(PartsPolicy policy) noexcept { return kPartsNames[static_cast<std::size_t>(policy)]; }

std::optional<PartsPolicy> find_parts_policy(std::string_view name) noexcept { return find_by_name<PartsPolicy>(kPartsNames, name); }

std::string describe_speeds(int size, const Topology& topology) {
  std::string text;
  std::size_t slower = 0;
  for (int rank = 0; rank < size && topology.has_speeds(); ++rank) {
    if (topology.is_guest(rank) || topology.speed(rank) == kFullSpeed || ++slower > kMostNamed) continue;
    char speed[16];
    std::snprintf(speed, sizeof speed, "%.2f", static_cast<double>(topology.speed(rank)) / kFullSpeed);
    const bool owns = topology.index_among_owners(rank) >= 0;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + " has " + speed + " of the others' speed and owns " +
            (owns ? "a smaller part" : "no part");
  }
  return text + more_text(slower);
}

double estimated_ns(const Call& call, Algorithm algorithm, std::size_t bytes, int size, const Topology& topology,
                    const Placement& placement) {
  const CallLoad shape(call, bytes, size, topology);
  Load load = load_of(call.kind, algorithm, shape, topology);
  const bool is_weighed = algorithm == Algorithm::hub && !is_rooted(call.kind);
  if (!is_weighed) load.native_bytes *= shape.slowest;
  const double moving = std::max(load.native_bytes * placement.native.ns_per_byte, load.guest_bytes * placement.guest.ns_per_byte);
  return load.native_hops * placement.native.latency_ns + load.guest_hops * placement.guest.latency_ns + moving;
}

/// Returns the hub where speeds differ and it makes an all-reduce faster than `otherwise`, else that.
static Algorithm hub_if_faster(const Call& call, Algorithm otherwise, std::size_t bytes, int size, const Topology& topology,
                               const Placement& placement) {
  const bool may_differ = topology.has_speeds() && placement.policy != PlacementPolicy::ring && call.kind == CollectiveKind::all_reduce &&
                          (otherwise == Algorithm::direct || otherwise == Algorithm::ring);
  const auto estimate = [&](Algorithm algorithm) { return estimated_ns(call, algorithm, bytes, size, topology, placement); };
  return may_differ && estimate(Algorithm::hub) < estimate(otherwise) ? Algorithm::hub : otherwise;
}

static Algorithm choose_fastest(const Call& call, std::size_t bytes, int size, const Topology& topology, const AlgorithmLimits& limits,
                                const Placement& placement) {
  if (goes_by_machines(call, bytes, size, topology, limits, placement)) return Algorithm::machines;
  // An exchange would give blocks the same bits. But they are for large tensors, and two algorithms are enough for them.
  Algorithm as_natives = call.blocks ? Algorithm::direct : choose_algorithm(call.kind, bytes, size, limits);
  if (as_natives == Algorithm::ring && refuses_ring(call, size, placement.order))
    as_natives = in_rank_order(call.kind, topology.natives(size) > 0);
  if (!topology.has_guests()) return hub_if_faster(call, as_natives, bytes, size, topology, placement);
  // A step of a doubling between two guests would pass two links.
  if (as_natives == Algorithm::doubling) as_natives = Algorithm::exchange;
  if (!facts_of(call.kind).algorithms.has(Algorithm::hub) || topology.natives(size) == 0 || placement.policy == PlacementPolicy::ring)
    return as_natives;
  if (placement.policy == PlacementPolicy::hub) return Algorithm::hub;
  const auto estimate = [&](Algorithm algorithm) { return estimated_ns(call, algorithm, bytes, size, topology, placement); };
  return estimate(Algorithm::hub) <= estimate(as_natives) ? Algorithm::hub : as_natives;
}

Algorithm choose_algorithm(const Call& call, std::size_t bytes, int size, const Topology& topology, const AlgorithmLimits& limits,
                           const Placement& placement) {
  const bool keeps_order = placement.parts == PartsPolicy::passive && topology.has_speeds() && depends_on_order(call, size);
  if (!keeps_order) return choose_fastest(call, bytes, size, topology, limits, placement);
  Topology even = topology;
  even.set_speeds({});
  const Algorithm chosen = choose_fastest(call, bytes, size, even, limits, placement);
  // The hub adds in the same order.
  return chosen == Algorithm::direct ? hub_if_faster(call, chosen, bytes, size, topology, placement) : chosen;
}

Algorithm choose_again(const Call& call, int size, const Topology& topology, const AlgorithmLimits& limits, const Placement& placement) {
  if (call.kind != CollectiveKind::all_reduce) return call.algorithm;
  const Algorithm chosen = choose_algorithm(call, call.bytes(), size, topology, limits, placement);
  const bool may_overflow = call.divisor != 1.0 && is_divided_first(call.dtype) && rounds_partial_sums(chosen);
  return may_overflow ? Algorithm::direct : chosen;
}

std::string describe_placement(int size, const Topology& topology, const AlgorithmLimits& limits, const Placement& placement) {
  constexpr std::size_t kLargeBytes = 64 << 20;
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.dtype = DType::f32;
  const Algorithm chosen = choose_algorithm(call, kLargeBytes, size, topology, limits, placement);
  std::string text = counted(topology.natives(size), "native rank", "native ranks");
  if (size == 1) return text + ": nothing to move";
  if (topology.has_shared_machines()) text += " on " + counted(topology.machines() - topology.guests(), "machine", "machines");
  const bool in_order = placement.order == ReduceOrder::rank;
  const std::string by = ": large all-reduces " + std::string(in_order ? "in rank order, by " : "by ") + std::string(name_of(chosen));
  // Along a ring parts stay equal.
  const std::string speeds = chosen == Algorithm::hub ? describe_speeds(size, topology) : std::string();
  const std::string slower = speeds.empty() ? speeds : "; " + speeds;
  if (!topology.has_guests()) return text + by + slower;
  const auto estimate = [&](Algorithm algorithm) {
    return milliseconds(estimated_ns(call, algorithm, kLargeBytes, size, topology, placement));
  };
  const Algorithm without_hub = in_order ? Algorithm::direct : Algorithm::ring;
  const Algorithm other = chosen == Algorithm::hub ? without_hub : Algorithm::hub;
  text += ", " + counted(topology.guests(), "browser", "browsers") + by + " (";
  if (placement.policy != PlacementPolicy::automatic) text += "as the placement is set; ";
  text += "estimated " + estimate(chosen) + " for 64 MiB";
  if (topology.natives(size) > 0) text += "; " + std::string(name_of(other)) + " " + estimate(other);
  return text + ")" + slower;
}

}  // namespace ringlet
