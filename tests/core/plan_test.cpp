#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "core/plan/chunk_layout.hpp"
#include "core/plan/make_plan.hpp"

using namespace ringlet;

namespace {

/// What stands in one byte: how often each rank's contribution is in it; empty: nothing was written yet.
using Content = std::vector<int>;

/// Replays the plans of all ranks over symbolic memory, step by step, each as soon as what it waits for is done.
class Replay {
 public:
  Replay(const Call& call, int size, bool in_place)
      : call_(call), size_(size), in_place_(in_place), ranks_(static_cast<std::size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      Rank& state = at(rank);
      make_plan(call, rank, size, in_place, state.plan);
      state.done.assign(state.plan.receives.size() + state.plan.combines.size(), false);
      state.memory[Buffer::input].assign(call.bytes(), unit(rank));
      state.memory[Buffer::output].assign(output_bytes(rank), {});
      state.memory[Buffer::scratch].assign(state.plan.scratch_bytes, {});
      if (state.plan.copy_from.bytes > 0) write(state, state.plan.copy_to, read(state, state.plan.copy_from));
      for (const PeerSteps& steps : state.plan.peers) {
        REQUIRE(steps.peer != rank);
        state.lanes[steps.peer] = {steps, 0, 0};
      }
    }
  }

  void run() {
    check_pairs();
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < size_; ++rank) {
        for (auto& [peer, lane] : at(rank).lanes) progress |= transfer(rank, peer);
        for (std::size_t i = 0; i < at(rank).plan.combines.size(); ++i) progress |= combine(rank, i);
      }
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

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Content unit(int rank) const {
    Content content(static_cast<std::size_t>(size_));
    content[static_cast<std::size_t>(rank)] = 1;
    return content;
  }
  std::size_t output_bytes(int rank) const {
    if (call_.kind == CollectiveKind::reduce_scatter)
      return rows_of(call_.rows, size_, rank).count() * call_.row_elements * size_of(call_.dtype);
    return call_.kind == CollectiveKind::all_gather ? call_.bytes() * static_cast<std::size_t>(size_) : call_.bytes();
  }
  std::vector<Content>& memory(Rank& state, Buffer buffer) {
    return state.memory[in_place_ && buffer == Buffer::output ? Buffer::input : buffer];
  }

  std::vector<Content> read(Rank& state, const Region& region) {
    auto& bytes = memory(state, region.buffer);
    REQUIRE(region.offset_bytes + region.bytes <= bytes.size());
    std::vector<Content> out(bytes.begin() + static_cast<std::ptrdiff_t>(region.offset_bytes),
                             bytes.begin() + static_cast<std::ptrdiff_t>(region.offset_bytes + region.bytes));
    for (const auto& content : out) REQUIRE_FALSE(content.empty());
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
    for (std::size_t i = 0; i < sum.size(); ++i)
      for (std::size_t r = 0; r < sum[i].size(); ++r) sum[i][r] += values[i][r];
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
        REQUIRE(send.from.bytes ==
                (index < receives ? state.plan.receives[index].into.bytes : state.plan.combines[index - receives].into.bytes));
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
    std::vector<Content> sum(combine.into.bytes, Content(static_cast<std::size_t>(size_)));
    for (std::uint32_t i = 0; i < combine.operand_count; ++i) {
      const auto& operand = state.plan.operands[combine.first_operand + i];
      if (operand.after != kAtOnce && !state.done[static_cast<std::size_t>(operand.after)]) return false;
      const auto values = read(state, operand.from);
      // Rank order: the i-th operand is the i-th rank's.
      for (const auto& content : values) REQUIRE(content == unit(static_cast<int>(i)));
      add(sum, values);
    }
    write(state, combine.into, sum);
    return state.done[progress] = true;
  }

  void check_result(int rank) {
    if (call_.kind == CollectiveKind::barrier) {
      REQUIRE(at(rank).lanes.size() == static_cast<std::size_t>(size_ - 1));
      return;
    }
    const bool is_root = call_.kind == CollectiveKind::broadcast && rank == call_.root;
    auto& output = memory(at(rank), is_root ? Buffer::input : Buffer::output);
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (call_.kind == CollectiveKind::all_gather)
        REQUIRE(output[i] == unit(static_cast<int>(i / call_.bytes())));
      else if (call_.kind == CollectiveKind::broadcast)
        REQUIRE(output[i] == unit(call_.root));
      else
        REQUIRE(output[i] == Content(static_cast<std::size_t>(size_), 1));
    }
  }

  const Call call_;
  const int size_;
  const bool in_place_;
  std::vector<Rank> ranks_;
};

void replay(CollectiveKind kind, Algorithm algorithm, int size, std::uint64_t rows, std::uint64_t row_elements, int root, bool in_place) {
  Call call;
  call.kind = kind;
  call.algorithm = algorithm;
  call.rows = rows;
  call.row_elements = row_elements;
  call.root = root;
  call.dtype = DType::u8;
  CAPTURE(describe(call), size, in_place);
  Replay(call, size, in_place).run();
}

}  // namespace

TEST_CASE("the plans of all ranks fit each other and bring every contribution once") {
  using Kind = CollectiveKind;
  for (int size = 2; size <= 8; ++size) {
    for (const std::uint64_t rows : {0U, 1U, 2U, 5U, 8U, 15U, 16U, 17U, 33U, 64U, 100U, 131U}) {
      for (const auto algorithm : {Algorithm::exchange, Algorithm::direct, Algorithm::ring}) {
        for (const bool in_place : {false, true}) replay(Kind::all_reduce, algorithm, size, rows, 1, 0, in_place);
        if (algorithm == Algorithm::exchange) continue;
        for (const std::uint64_t width : {0U, 1U, 3U}) replay(Kind::reduce_scatter, algorithm, size, rows, width, 0, false);
        replay(Kind::all_gather, algorithm, size, rows, 1, 0, false);
        for (int root = 0; root < size; ++root) replay(Kind::broadcast, algorithm, size, rows, 1, root, true);
      }
    }
    replay(Kind::barrier, Algorithm::exchange, size, 0, 1, 0, true);
  }
}
