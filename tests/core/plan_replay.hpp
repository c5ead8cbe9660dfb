#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "core/plan/make_plan.hpp"
#include "core/plan/part_layout.hpp"

namespace ringlet::test {

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

inline void replay(Call call, int size, bool in_place, const Topology& topology = {}) {
  call.dtype = DType::u8;
  CAPTURE(describe(call), size, in_place, topology.guests());
  Replay(call, size, topology, in_place).run();
}

inline Call call_of(CollectiveKind kind, Algorithm algorithm, std::uint64_t rows, std::uint64_t row_elements = 1, int root = 0) {
  Call call;
  call.kind = kind;
  call.algorithm = algorithm;
  call.rows = rows;
  call.row_elements = row_elements;
  call.root = root;
  return call;
}

}  // namespace ringlet::test
