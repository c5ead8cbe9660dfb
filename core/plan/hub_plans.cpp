#include <algorithm>
#include <span>

#include "core/plan/part_layout.hpp"
#include "core/plan/plans.hpp"

namespace ringlet {

namespace {

/// Where one rank is slow, its results should come back while it still sends, so an owner sends them on in smaller pieces.
void limit_segments(PlanWriter& plan) {
  constexpr std::size_t kSegmentBytesOfUnequals = 32 << 10;
  if (plan.topology().has_speeds()) plan.limit_segments(kSegmentBytesOfUnequals);
}

/// Says which ranks own parts of the call's buffer, how large these are, and into which blocks the contributions to a part are divided.
class Owners {
 public:
  explicit Owners(const PlanWriter& plan) : plan_(plan) {
    const std::size_t wanted = plan.call().bytes() / std::max<std::size_t>(plan.topology().leaf_limits().owned_bytes, 1);
    const auto most = static_cast<std::size_t>(plan.topology().owners(plan.size()));
    count_ = static_cast<int>(std::clamp<std::size_t>(wanted, 1, most));
    // A small buffer, which has fewer owners, is divided equally.
    if (wanted >= most) weights_ = plan.topology().owner_weights();
  }

  bool owns(int rank) const {
    const int index = plan_.topology().index_among_owners(rank);
    return index >= 0 && index < count_;
  }
  Region part(Buffer buffer, int owner) const {
    const int index = plan_.topology().index_among_owners(owner);
    const std::size_t elements = plan_.call().elements();
    const ElementRange range = weights_.empty() ? part_of(elements, count_, index) : part_of(elements, weights_, index);
    const std::size_t width = plan_.call().element_bytes();
    return {buffer, range.begin * width, range.count() * width};
  }

  /// The bytes that one rank may have under way to an owner.
  std::size_t window_bytes(int owner) const { return std::min(part(Buffer::input, owner).bytes, kBlocksPerWindow * block_bytes(owner)); }
  int blocks(int owner) const {
    const std::size_t bytes = part(Buffer::input, owner).bytes;
    const std::size_t block = block_bytes(owner);
    return bytes <= block ? 1 : static_cast<int>((bytes + block - 1) / block);
  }
  /// Block number `index` of the part that `whole` covers.
  Region block(Region whole, int owner, int index) const {
    const std::size_t begin = static_cast<std::size_t>(index) * block_bytes(owner);
    return {whole.buffer, whole.offset_bytes + begin, std::min(block_bytes(owner), whole.bytes - begin)};
  }
  /// The scratch memory that holds the block of the rank in `slot` until it has been added.
  Region contribution(int slot, int owner, int index) const {
    const std::size_t of_rank = static_cast<std::size_t>(slot) * window_bytes(owner);
    const std::size_t in_window = static_cast<std::size_t>(index % kWindow) * block_bytes(owner);
    return {Buffer::scratch, of_rank + in_window, block(part(Buffer::input, owner), owner, index).bytes};
  }

  /// A rank sends its block number i once it has the result of number i - kWindow. This bounds an owner's memory; while one rank is late,
  /// the contributions of others wait at their senders.
  static constexpr int kWindow = 2;

 private:
  static constexpr std::size_t kBlocksPerWindow = kWindow;

  /// The whole part is one block if it fits into the window.
  std::size_t block_bytes(int owner) const {
    const LeafLimits& limits = plan_.topology().leaf_limits();
    const std::size_t share = limits.window_bytes / static_cast<std::size_t>(plan_.size() - 1);
    const std::size_t window = std::clamp(share, limits.least_window_bytes, limits.most_window_bytes);
    const std::size_t bytes = part(Buffer::input, owner).bytes;
    // A multiple of every dtype's element, or of the call's own where that is a block of them.
    const std::size_t element = std::max(detail::kLargestElementBytes, plan_.call().element_bytes());
    return bytes <= window ? bytes : std::max(window / kBlocksPerWindow / element, std::size_t{1}) * element;
  }

  const PlanWriter& plan_;
  int count_ = 1;
  std::span<const std::uint32_t> weights_;
};

/// Writes one rank's plan. A rank sends an owner the blocks of its contribution. An owner sends a rank the results or, in a reduce to
/// another root, empty transfers in place of them. If both own parts, each direction carries contributions and results in the order C0 C1
/// R0 C2 R1 C3 R2 ...
class HubReduction {
 public:
  explicit HubReduction(PlanWriter& plan) : plan_(plan), owners_(plan) {}

  void write() {
    int receives = 0;
    for (int peer = 0; peer < plan_.size(); ++peer)
      if (is_partner(peer)) receives += contributions(plan_.rank()) + results(peer, plan_.rank());
    if (owners_.owns(plan_.rank())) take_scratch();
    for (int peer = 0, slot = 0; peer < plan_.size(); ++peer) {
      if (!is_partner(peer)) continue;
      plan_.with(peer);
      write_sends(peer, receives);
      write_receives(peer, slot++);
    }
    if (owners_.owns(plan_.rank())) write_combines();
  }

 private:
  static constexpr int kWindow = Owners::kWindow;

  bool is_partner(int peer) const { return peer != plan_.rank() && (owners_.owns(peer) || owners_.owns(plan_.rank())); }
  bool wants_result(int rank) const { return plan_.call().kind != CollectiveKind::reduce || rank == plan_.call().root; }
  /// The number of contributions, and of results, that are sent to a rank.
  int contributions(int to) const { return owners_.owns(to) ? owners_.blocks(to) : 0; }
  int results(int from, int to) const {
    if (!owners_.owns(from)) return 0;
    const int blocks = owners_.blocks(from);
    return wants_result(to) ? blocks : std::max(blocks - kWindow, 0);
  }
  /// The position of a contribution, or of a result, among the transfers from one rank to another, if there are `others` transfers of the
  /// other sort.
  static int place_of_contribution(int index, int others) { return index + std::min(others, std::max(index - 1, 0)); }
  static int place_of_result(int index, int others) { return index + std::min(others, index + 2); }

  /// Calls `contribution` or `result` for each transfer, in the order of the transfers.
  template <class Contribution, class Result>
  void each_transfer(int from, int to, Contribution contribution, Result result) const {
    const int contribution_count = contributions(to);
    const int result_count = results(from, to);
    for (int i = 0; i <= std::max(contribution_count, result_count); ++i) {
      if (i < contribution_count) contribution(i);
      if (i > 0 && i <= result_count) result(i - 1);
    }
  }

  void take_scratch() {
    const int rank = plan_.rank();
    plan_.take_scratch(static_cast<std::size_t>(plan_.size() - 1) * owners_.window_bytes(rank));
    result_ = owners_.part(Buffer::output, rank);
    if (!wants_result(rank)) result_ = plan_.take_scratch(result_.bytes);
  }

  void write_sends(int peer, int receives) {
    const int rank = plan_.rank();
    const ProgressIndex first_receive = plan_.next_receive();
    each_transfer(
        rank, peer,
        [&](int i) {
          ProgressIndex after = kAtOnce;
          if (i >= kWindow) after = first_receive + place_of_result(i - kWindow, contributions(rank));
          plan_.send(owners_.block(owners_.part(Buffer::input, peer), peer, i), after);
        },
        [&](int i) { plan_.send(wants_result(peer) ? owners_.block(result_, rank, i) : Region{}, receives + i); });
  }

  void write_receives(int peer, int slot) {
    const int rank = plan_.rank();
    each_transfer(
        peer, rank, [&](int i) { plan_.receive(owners_.contribution(slot, rank, i)); },
        [&](int i) {
          const Region into =
              wants_result(rank) ? owners_.block(owners_.part(Buffer::output, peer), peer, i) : Region{Buffer::scratch, 0, 0};
          plan_.receive(into);
        });
  }

  /// Contributions are added in rank order, as in the direct algorithm. Every other rank has a slot, in rank order.
  void write_combines() {
    const int rank = plan_.rank();
    for (int i = 0; i < owners_.blocks(rank); ++i) {
      plan_.combine(owners_.block(result_, rank, i), false);
      for (int r = 0; r < plan_.size(); ++r) {
        const int slot = r < rank ? r : r - 1;
        if (r == rank)
          plan_.add_operand(owners_.block(owners_.part(Buffer::input, rank), rank, i), kAtOnce);
        else
          plan_.add_operand(owners_.contribution(slot, rank, i), plan_.first_receive(slot) + place_of_contribution(i, results(r, rank)));
      }
    }
  }

  PlanWriter& plan_;
  const Owners owners_;
  Region result_{};
};

}  // namespace

void plan_hub_reduction(PlanWriter& plan) {
  limit_segments(plan);
  HubReduction(plan).write();
}

// The root sends every owner its part, and the owner passes it on to the others. The root sends the part that it owns to all ranks itself.
void plan_hub_broadcast(PlanWriter& plan) {
  limit_segments(plan);
  const Owners owners(plan);
  const int root = plan.call().root;
  const int rank = plan.rank();
  const bool owns = owners.owns(rank);
  const bool root_owns = owners.owns(root);
  ProgressIndex own_part = kAtOnce;
  if (!plan.is_root() && (owns || root_owns)) {
    plan.with(root);
    own_part = plan.next_receive();
    if (owns) plan.receive(owners.part(Buffer::output, rank));
    if (root_owns) plan.receive(owners.part(Buffer::output, root));
  }
  for (int peer = 0; peer < plan.size(); ++peer) {
    const bool peer_owns = owners.owns(peer);
    if (peer == rank || peer == root || !(owns || peer_owns)) continue;
    plan.with(peer);
    if (peer_owns && plan.is_root()) plan.send(owners.part(Buffer::input, peer));
    if (owns) plan.send(owners.part(plan.is_root() ? Buffer::input : Buffer::output, rank), own_part);
    if (peer_owns && !plan.is_root()) plan.receive(owners.part(Buffer::output, peer));
  }
}

}  // namespace ringlet
