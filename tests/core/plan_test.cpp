#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <vector>

#include "core/plan/make_plan.hpp"
#include "core/plan/part_layout.hpp"

using namespace ringlet;

namespace {

/// The content of one byte: how often it contains each rank's contribution, and which byte of that rank's input this was.
struct Content {
  std::vector<int> times;  // by rank; empty: nothing was written yet
  std::size_t from = 0;

  friend bool operator==(const Content&, const Content&) = default;
};

/// Replays the plans of all ranks over symbolic memory, step by step. Each step is done as soon as what it waits for is done.
class Replay {
 public:
  /// Returns the rows that rank `from` sends to rank `to` in an all_to_all_v.
  static std::uint64_t traffic(int from, int to) { return static_cast<std::uint64_t>(from * 3 + to * 5) % 4; }

  Replay(const Call& call, int size, const Topology& topology, bool in_place)
      : call_(call), size_(size), topology_(topology), in_place_(in_place), ranks_(static_cast<std::size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      Rank& state = at(rank);
      make_plan(call_of_rank(rank), rank, size, topology, in_place, state.plan);
      state.done.assign(state.plan.receives.size() + state.plan.combines.size(), false);
      auto& input = state.memory[Buffer::input];
      for (std::size_t i = 0; i < input_bytes(rank); ++i) input.push_back(unit(rank, i));
      state.memory[Buffer::output].assign(output_bytes(rank), {});
      if (has_part_before(call)) {
        const int before = (rank + size - 1) % size;
        for (std::size_t i = 0; i < input_bytes(before); ++i)
          state.memory[Buffer::output][rows_of_rank(before).begin * width() + i] = unit(before, i);
      }
      state.memory[Buffer::scratch].assign(state.plan.scratch_bytes, {});
      if (state.plan.copy_from.bytes > 0) write(state, state.plan.copy_to, read(state, state.plan.copy_from));
      for (const PeerSteps& steps : state.plan.peers) {
        REQUIRE(steps.peer != rank);
        if (call.algorithm == Algorithm::hub) REQUIRE_FALSE((topology.is_guest(rank) && topology.is_guest(steps.peer)));
        state.lanes[steps.peer] = {steps, 0, 0};
      }
    }
  }

  void run() {
    check_pairs();
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < size_; ++rank)
        for (auto& [peer, lane] : at(rank).lanes) progress |= transfer(rank, peer);
      // Combining runs as late as possible: a receive that comes too early then overwrites bytes that have not been added yet.
      for (int rank = 0; rank < size_ && !progress; ++rank)
        for (std::size_t i = 0; i < at(rank).plan.combines.size() && !progress; ++i) progress |= combine(rank, i);
    }
    for (int rank = 0; rank < size_; ++rank) {
      for (const auto& [peer, lane] : at(rank).lanes) {
        REQUIRE(lane.sent == lane.steps.send_count);
        REQUIRE(lane.received == lane.steps.receive_count);
      }
      for (const bool done : at(rank).done) REQUIRE(done);
      check_result(rank);
    }
  }

 private:
  struct Lane {
    PeerSteps steps;
    std::uint32_t sent = 0, received = 0;
  };
  struct Rank {
    Plan plan;
    std::map<Buffer, std::vector<Content>> memory;
    std::map<int, Lane> lanes;
    std::vector<bool> done;
  };

  Call call_of_rank(int rank) const {
    Call own = call_;
    if (!is_pairwise(call_)) return own;
    own.counts.clear();
    for (int r = 0; r < size_; ++r) own.counts.push_back(traffic(rank, r));
    for (int r = 0; r < size_; ++r) own.counts.push_back(traffic(r, rank));
    return own;
  }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Content unit(int rank, std::size_t from) const {
    Content content{std::vector<int>(static_cast<std::size_t>(size_)), from};
    content.times[static_cast<std::size_t>(rank)] = 1;
    return content;
  }
  std::size_t width() const { return call_.row_elements * size_of(call_.dtype); }
  /// Returns the rows that `from` has for `to`, in a collective in which every rank has some for every rank.
  ElementRange rows_between(int from, int to, Buffer seen_in) const {
    if (!call_.counts.empty()) {
      std::vector<std::uint64_t> counts;
      for (int r = 0; r < size_; ++r) counts.push_back(seen_in == Buffer::input ? traffic(from, r) : traffic(r, to));
      return part_of(counts, seen_in == Buffer::input ? to : from);
    }
    const auto part = static_cast<std::size_t>(seen_in == Buffer::input ? to : from);
    return {part * call_.rows, (part + 1) * call_.rows};
  }
  ElementRange rows_of_rank(int rank) const {
    if (!call_.counts.empty()) return part_of(call_.counts, rank);
    if (call_.kind == CollectiveKind::reduce_scatter) return rows_of(call_.rows, size_, rank);
    const auto part = static_cast<std::size_t>(rank);
    return {part * call_.rows, (part + 1) * call_.rows};
  }
  std::size_t input_bytes(int rank) const {
    switch (call_.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::gather:
        return rows_of_rank(rank).count() * width();
      case CollectiveKind::scatter:
        return rank == call_.root ? rows_of_rank(size_ - 1).end * width() : 0;
      case CollectiveKind::all_to_all:
        return rows_between(rank, size_ - 1, Buffer::input).end * width();
      default:
        return call_.bytes();
    }
  }
  std::size_t output_bytes(int rank) const {
    const bool is_root = rank == call_.root;
    switch (call_.kind) {
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter:
        return rows_of_rank(rank).count() * width();
      case CollectiveKind::all_gather:
        return rows_of_rank(size_ - 1).end * width();
      case CollectiveKind::gather:
        return is_root ? rows_of_rank(size_ - 1).end * width() : 0;
      case CollectiveKind::all_to_all:
        return rows_between(size_ - 1, rank, Buffer::output).end * width();
      case CollectiveKind::reduce:
        return is_root ? call_.bytes() : 0;
      default:
        return call_.bytes();
    }
  }
  std::vector<Content>& memory(Rank& state, Buffer buffer) {
    return state.memory[in_place_ && buffer == Buffer::output ? Buffer::input : buffer];
  }

  std::vector<Content> read(Rank& state, const Region& region) {
    auto& bytes = memory(state, region.buffer);
    REQUIRE(region.offset_bytes + region.bytes <= bytes.size());
    std::vector<Content> out(bytes.begin() + static_cast<std::ptrdiff_t>(region.offset_bytes),
                             bytes.begin() + static_cast<std::ptrdiff_t>(region.offset_bytes + region.bytes));
    REQUIRE(std::none_of(out.begin(), out.end(), [](const Content& content) { return content.times.empty(); }));
    return out;
  }
  void write(Rank& state, const Region& region, const std::vector<Content>& values) {
    REQUIRE(region.buffer != Buffer::input);
    REQUIRE(region.bytes == values.size());
    auto& bytes = memory(state, region.buffer);
    REQUIRE(region.offset_bytes + region.bytes <= bytes.size());
    std::copy(values.begin(), values.end(), bytes.begin() + static_cast<std::ptrdiff_t>(region.offset_bytes));
  }
  static void add(std::vector<Content>& sum, const std::vector<Content>& values) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (sum[i].from != values[i].from) FAIL("byte " << values[i].from << " is added to byte " << sum[i].from);
      for (std::size_t r = 0; r < sum[i].times.size(); ++r) sum[i].times[r] += values[i].times[r];
    }
  }

  void check_pairs() {
    for (int rank = 0; rank < size_; ++rank) {
      Rank& state = at(rank);
      for (const auto& [peer, lane] : state.lanes) {
        const auto other = at(peer).lanes.find(rank);
        REQUIRE(other != at(peer).lanes.end());
        REQUIRE(lane.steps.send_count == other->second.steps.receive_count);
        for (std::uint32_t i = 0; i < lane.steps.send_count; ++i)
          REQUIRE(state.plan.sends[lane.steps.first_send + i].from.bytes ==
                  at(peer).plan.receives[other->second.steps.first_receive + i].into.bytes);
      }
      for (const Send& send : state.plan.sends) {
        if (send.after == kAtOnce) continue;
        const auto index = static_cast<std::size_t>(send.after);
        const std::size_t receives = state.plan.receives.size();
        REQUIRE(index < state.done.size());
        const std::size_t bytes =
            index < receives ? state.plan.receives[index].into.bytes : state.plan.combines[index - receives].into.bytes;
        // By the hub a send may also wait for a block of a window. The last block is shorter, and some blocks have no bytes.
        if (call_.algorithm == Algorithm::hub)
          REQUIRE((send.from.bytes <= bytes || bytes == 0));
        else
          REQUIRE(send.from.bytes == bytes);
        if (call_.algorithm != Algorithm::machines) continue;
        const Region& of_step = index < receives ? state.plan.receives[index].into : state.plan.combines[index - receives].into;
        REQUIRE(send.from == of_step);
      }
    }
  }

  bool transfer(int rank, int peer) {
    Rank& from = at(rank);
    Lane& out = from.lanes.at(peer);
    if (out.sent == out.steps.send_count) return false;
    const Send& send = from.plan.sends[out.steps.first_send + out.sent];
    if (send.after != kAtOnce && !from.done[static_cast<std::size_t>(send.after)]) return false;
    Rank& to = at(peer);
    Lane& in = to.lanes.at(rank);
    const std::size_t index = in.steps.first_receive + in.received;
    const Receive& receive = to.plan.receives[index];
    std::vector<Content> values = read(from, send.from);
    if (receive.verb == Verb::reduce) add(values, read(to, receive.operand));
    write(to, receive.into, values);
    to.done[index] = true;
    ++out.sent;
    ++in.received;
    return true;
  }

  bool combine(int rank, std::size_t index) {
    Rank& state = at(rank);
    const Combine& combine = state.plan.combines[index];
    const std::size_t progress = state.plan.receives.size() + index;
    if (state.done[progress]) return false;
    if (combine.after_sends)
      for (const auto& [peer, lane] : state.lanes)
        if (lane.sent < lane.steps.send_count) return false;
    std::vector<Content> sum;
    for (std::uint32_t i = 0; i < combine.operand_count; ++i) {
      const auto& operand = state.plan.operands[combine.first_operand + i];
      if (operand.after != kAtOnce && !state.done[static_cast<std::size_t>(operand.after)]) return false;
      const auto values = read(state, operand.from);
      // The operands are in rank order: the i-th is the i-th rank's, or that of the i-th machine's ranks, in the same order.
      REQUIRE(std::all_of(values.begin(), values.end(),
                          [&](const Content& content) { return is_operand(rank, combine, static_cast<int>(i), content); }));
      if (i == 0)
        sum = values;
      else
        add(sum, values);
    }
    write(state, combine.into, sum);
    return state.done[progress] = true;
  }

  bool is_operand(int rank, const Combine& combine, int number, const Content& content) const {
    if (call_.algorithm != Algorithm::machines) return content == unit(number, content.from);
    const auto& ranks = topology_.ranks_on(topology_.machine_of(rank));
    if (!combine.finish) return content == unit(ranks[static_cast<std::size_t>(number)], content.from);
    Content sum{std::vector<int>(static_cast<std::size_t>(size_)), content.from};
    for (const int each : topology_.ranks_on(number)) sum.times[static_cast<std::size_t>(each)] = 1;
    return content == sum;
  }

  void check_result(int rank) {
    if (call_.kind == CollectiveKind::barrier) return;
    const bool is_source = call_.kind == CollectiveKind::broadcast && rank == call_.root;
    auto& output = memory(at(rank), is_source ? Buffer::input : Buffer::output);
    for (std::size_t i = 0; i < output.size(); ++i)
      if (!(output[i] == expected(rank, i))) FAIL("rank " << rank << " has a wrong byte " << i);
  }

  /// Returns the content that byte `i` of a rank's output must have.
  Content expected(int rank, std::size_t i) const {
    const Content all{std::vector<int>(static_cast<std::size_t>(size_), 1), i};
    switch (call_.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::gather:
        for (int r = 0; r < size_; ++r)
          if (i < rows_of_rank(r).end * width()) return unit(r, i - rows_of_rank(r).begin * width());
        return {};
      case CollectiveKind::broadcast:
        return unit(call_.root, i);
      case CollectiveKind::scatter:
        return unit(call_.root, rows_of_rank(rank).begin * width() + i);
      case CollectiveKind::all_to_all:
        for (int r = 0; r < size_; ++r) {
          const ElementRange rows = rows_between(r, rank, Buffer::output);
          if (i < rows.end * width()) return unit(r, rows_between(r, rank, Buffer::input).begin * width() + i - rows.begin * width());
        }
        return {};
      case CollectiveKind::reduce_scatter:
        return {all.times, rows_of_rank(rank).begin * width() + i};
      default:
        return all;
    }
  }

  const Call call_;
  const int size_;
  const Topology topology_;
  const bool in_place_;
  std::vector<Rank> ranks_;
};

void replay(Call call, int size, bool in_place, const Topology& topology = {}) {
  call.dtype = DType::u8;
  CAPTURE(describe(call), size, in_place, topology.guests());
  Replay(call, size, topology, in_place).run();
}

Call call_of(CollectiveKind kind, Algorithm algorithm, std::uint64_t rows, std::uint64_t row_elements = 1, int root = 0) {
  Call call;
  call.kind = kind;
  call.algorithm = algorithm;
  call.rows = rows;
  call.row_elements = row_elements;
  call.root = root;
  return call;
}

/// Returns shares of every sort: equal, none for some, all for one, and uneven ones.
std::vector<std::vector<std::uint64_t>> counts_for(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<std::vector<std::uint64_t>> all{std::vector<std::uint64_t>(ranks, 0), std::vector<std::uint64_t>(ranks, 5)};
  for (std::size_t seed = 1; seed < 5; ++seed) {
    all.emplace_back();
    for (std::size_t r = 0; r < ranks; ++r) all.back().push_back(r * r * seed % 7);
  }
  all.emplace_back(ranks, 0).back() = 40;
  all.emplace_back(ranks, 0).front() = 40;
  return all;
}

}  // namespace

TEST_CASE("the plans of all ranks fit each other and bring every contribution once") {
  using Kind = CollectiveKind;
  for (int size = 2; size <= 8; ++size) {
    for (const std::uint64_t rows : {0U, 1U, 2U, 5U, 8U, 15U, 16U, 17U, 33U, 64U, 100U, 131U}) {
      for (const auto algorithm : {Algorithm::exchange, Algorithm::direct, Algorithm::ring}) {
        for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, algorithm, rows), size, in_place);
        if (algorithm == Algorithm::exchange) continue;
        for (const std::uint64_t width : {0U, 1U, 3U}) replay(call_of(Kind::reduce_scatter, algorithm, rows, width), size, false);
        replay(call_of(Kind::all_gather, algorithm, rows), size, false);
        for (int root = 0; root < size; ++root) {
          replay(call_of(Kind::broadcast, algorithm, rows, 1, root), size, true);
          replay(call_of(Kind::reduce, algorithm, rows, 1, root), size, false);
        }
      }
    }
    replay(call_of(Kind::barrier, Algorithm::exchange, 0), size, true);
  }
  for (const int size : {2, 4, 8, 16}) {
    replay(call_of(Kind::barrier, Algorithm::doubling, 0), size, true);
    for (const std::uint64_t rows : {0U, 1U, 17U, 100U})
      for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::doubling, rows), size, in_place);
  }
}

TEST_CASE("the plans of parts put every part in its place") {
  using Kind = CollectiveKind;
  for (int size = 2; size <= 8; ++size) {
    for (const std::uint64_t width : {0U, 1U, 3U}) {
      for (const std::uint64_t rows : {0U, 1U, 7U, 20U}) {
        replay(call_of(Kind::all_to_all, Algorithm::direct, rows, width), size, false);
        for (int root = 0; root < size; ++root) {
          replay(call_of(Kind::gather, Algorithm::direct, rows, width, root), size, false);
          replay(call_of(Kind::scatter, Algorithm::direct, rows, width, root), size, false);
        }
      }
      for (const auto& counts : counts_for(size)) {
        Call call = call_of(Kind::all_gather, Algorithm::direct, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), width);
        call.counts = counts;
        for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
          for (const auto algorithm : {Algorithm::direct, Algorithm::ring}) {
            call.kind = kind;
            call.algorithm = algorithm;
            replay(call, size, false);
          }
        }
        call.kind = Kind::all_gather;
        call.root = 1;
        for (const auto algorithm : {Algorithm::direct, Algorithm::ring}) {
          call.algorithm = algorithm;
          replay(call, size, false);
        }
        call.algorithm = Algorithm::direct;
        for (call.root = 0; call.root < size; ++call.root) {
          for (const auto kind : {Kind::gather, Kind::scatter}) {
            call.kind = kind;
            replay(call, size, false);
          }
        }
      }
      Call pairwise = call_of(Kind::all_to_all, Algorithm::direct, 0, width);
      pairwise.counts.assign(2 * static_cast<std::size_t>(size), 0);
      replay(pairwise, size, false);
    }
  }
}

TEST_CASE("the hub brings every contribution once, whoever is a guest, and nothing passes between guests") {
  using Kind = CollectiveKind;
  for (int natives = 1; natives <= 4; ++natives) {
    for (int guests = 0; guests <= 8; ++guests) {
      const int size = natives + guests;
      if (size < 2) continue;
      for (const LeafLimits limits : {LeafLimits{}, LeafLimits{1, 0, 16, 16}, LeafLimits{20, 200, 1000, 8}}) {
        const Topology topology = Topology::of_world(size, guests, limits);
        replay(call_of(Kind::barrier, Algorithm::hub, 0), size, true, topology);
        for (const std::uint64_t rows : {0U, 1U, 5U, 16U, 17U, 40U, 100U, 131U}) {
          for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::hub, rows), size, in_place, topology);
          for (const int root : {0, natives - 1, size - 1}) {
            replay(call_of(Kind::reduce, Algorithm::hub, rows, 1, root), size, false, topology);
            replay(call_of(Kind::broadcast, Algorithm::hub, rows, 1, root), size, true, topology);
          }
        }
      }
      replay(call_of(Kind::all_reduce, Algorithm::hub, 3000), size, true, Topology::of_world(size, guests));
    }
  }
}

TEST_CASE("every plan fits whoever is a guest") {
  using Kind = CollectiveKind;
  for (int natives = 0; natives <= 4; ++natives) {
    for (int guests = 1; guests <= 5; ++guests) {
      const int size = natives + guests;
      if (size < 2) continue;
      std::vector<bool> is_guest(static_cast<std::size_t>(size), true);
      for (int native = 0; native < natives; ++native) is_guest[static_cast<std::size_t>(native * size / natives)] = false;
      const Topology topology(is_guest, {1, 0, 16, 16});
      for (const std::uint64_t rows : {0U, 1U, 17U, 100U}) {
        replay(call_of(Kind::all_reduce, Algorithm::ring, rows), size, true, topology);
        if (natives > 0) replay(call_of(Kind::all_reduce, Algorithm::hub, rows), size, false, topology);
        replay(call_of(Kind::reduce_scatter, Algorithm::ring, rows, 3), size, false, topology);
        replay(call_of(Kind::all_gather, Algorithm::ring, rows), size, false, topology);
        replay(call_of(Kind::all_to_all, Algorithm::direct, rows), size, false, topology);
        for (int root = 0; root < size; ++root) {
          for (const auto kind : {Kind::broadcast, Kind::reduce}) {
            replay(call_of(kind, Algorithm::ring, rows, 1, root), size, kind == Kind::broadcast, topology);
            if (natives > 0) replay(call_of(kind, Algorithm::hub, rows, 1, root), size, kind == Kind::broadcast, topology);
          }
        }
      }
      for (const auto& counts : counts_for(size)) {
        Call call = call_of(Kind::all_gather, Algorithm::ring, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
        call.counts = counts;
        for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
          call.kind = kind;
          replay(call, size, false, topology);
        }
      }
    }
  }
}

namespace {

/// Returns all ways to divide ranks among machines that are numbered by their lowest ranks.
std::vector<std::vector<int>> all_machines(int size) {
  std::vector<std::vector<int>> all{{0}};
  for (int rank = 1; rank < size; ++rank) {
    std::vector<std::vector<int>> longer;
    for (const auto& machines : all) {
      for (int machine = 0; machine <= *std::max_element(machines.begin(), machines.end()) + 1; ++machine) {
        longer.push_back(machines);
        longer.back().push_back(machine);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Limits with which small buffers go as large ones do.
constexpr MachineLimits kOneSlice{}, kExchanged{0, 1, 1000, 1000, 1000}, kDirect{0, 16, 1000, 0, 0}, kChained{0, 16, 0, 0, 0},
    kChainedExchange{0, 20, 0, 1000, 1000};

}  // namespace

TEST_CASE("by machines every contribution comes once, however ranks share them") {
  using Kind = CollectiveKind;
  for (int size = 3; size <= 6; ++size) {
    for (const auto& machines : all_machines(size)) {
      Topology topology;
      topology.set_machines(machines, {});
      if (!topology.has_shared_machines()) continue;
      CAPTURE(machines);
      for (const MachineLimits& limits : {kOneSlice, kExchanged, kDirect, kChained, kChainedExchange}) {
        topology.set_machines(machines, limits);
        for (const std::uint64_t rows : {0U, 1U, 17U, 100U})
          for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::machines, rows), size, in_place, topology);
        for (int root = 0; root < size; ++root) replay(call_of(Kind::broadcast, Algorithm::machines, 17, 1, root), size, true, topology);
      }
    }
  }
  for (const int on_each : {2, 3, 4}) {
    const int size = 4 * on_each;
    for (const MachineLimits& limits : {kExchanged, kDirect, kChained}) {
      std::vector<int> machines;
      for (int rank = 0; rank < size; ++rank) machines.push_back(rank / on_each);
      Topology topology;
      topology.set_machines(machines, limits);
      replay(call_of(Kind::all_reduce, Algorithm::machines, 1000), size, true, topology);
    }
  }
}

TEST_CASE("by machines each byte passes the network twice for a machine, less its own share") {
  constexpr std::size_t kRows = 3 * 16 * 64;
  for (const auto& machines : {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3}}) {
    for (const MachineLimits& limits : {kOneSlice, kDirect, kChained}) {
      Topology topology;
      topology.set_machines(machines, limits);
      const int size = static_cast<int>(machines.size());
      const auto count = static_cast<std::size_t>(topology.machines());
      std::vector<std::size_t> sent(count);
      Call call = call_of(CollectiveKind::all_reduce, Algorithm::machines, kRows);
      for (int rank = 0; rank < size; ++rank) {
        Plan plan;
        make_plan(call, rank, size, topology, true, plan);
        for (const PeerSteps& steps : plan.peers) {
          if (topology.machine_of(steps.peer) == topology.machine_of(rank)) continue;
          for (std::uint32_t i = 0; i < steps.send_count; ++i)
            sent[static_cast<std::size_t>(topology.machine_of(rank))] += plan.sends[steps.first_send + i].from.bytes;
        }
      }
      for (const std::size_t bytes : sent) {
        CAPTURE(machines);
        // Up to a limit whole slices are exchanged, which is no more between two machines.
        const bool is_exchanged = count == 2 || kRows * (count - 1) * (count - 2) / count <= limits.excess_bytes;
        CHECK(bytes == (is_exchanged ? kRows * (count - 1) : 2 * kRows * (count - 1) / count));
      }
    }
  }
}
