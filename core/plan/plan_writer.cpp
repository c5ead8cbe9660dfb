#include "core/plan/plan_writer.hpp"

#include <span>

#include "core/plan/gathering.hpp"
#include "core/plan/part_layout.hpp"

namespace ringlet {

namespace {

ElementRange rows_of_part(const Call& call, int size, Buffer buffer, int owner) {
  if (call.kind == CollectiveKind::reduce_scatter && call.counts.empty()) return rows_of(call.rows, size, owner);
  if (call.counts.empty()) {
    const auto rank = static_cast<std::size_t>(owner);
    const auto rows = static_cast<std::size_t>(call.rows);
    return {rank * rows, (rank + 1) * rows};
  }
  const std::span<const std::uint64_t> counts = call.counts;
  const bool second_half = is_pairwise(call) && buffer == Buffer::output;
  return part_of(second_half ? counts.last(counts.size() / 2) : counts, owner);
}

}  // namespace

Region PlanWriter::part(Buffer buffer, int owner) const {
  const bool by_element = call_.kind == CollectiveKind::all_reduce;
  const ElementRange range = by_element ? part_of(call_.elements(), size_, owner) : rows_of_part(call_, size_, buffer, owner);
  const std::size_t width = (by_element ? 1 : call_.row_elements) * call_.element_bytes();
  return {buffer, range.begin * width, range.count() * width};
}

Region PlanWriter::piece(const Region& of, int count, int index) const {
  const std::size_t width = call_.element_bytes();
  const ElementRange range = part_of(of.bytes / width, count, index);
  return {of.buffer, of.offset_bytes + range.begin * width, range.count() * width};
}

void PlanWriter::with(int peer) {
  PeerSteps steps;
  steps.peer = peer;
  steps.first_send = static_cast<std::uint32_t>(plan_.sends.size());
  steps.first_receive = static_cast<std::uint32_t>(plan_.receives.size());
  plan_.peers.push_back(steps);
}

void PlanWriter::with_late_call(int peer) {
  with(peer);
  plan_.peers.back().call_with_first_send = true;
}

void PlanWriter::send(Region from, ProgressIndex after) {
  plan_.sends.push_back({from, after});
  ++plan_.peers.back().send_count;
}

void PlanWriter::add_receive(const Receive& step) {
  plan_.receives.push_back(step);
  ++plan_.peers.back().receive_count;
}

void PlanWriter::copy(Region from, Region to) {
  plan_.copy_from = from;
  plan_.copy_to = to;
}

void PlanWriter::combine(Region into, bool after_sends) {
  plan_.combines.push_back({into, static_cast<std::uint32_t>(plan_.operands.size()), 0, after_sends});
}

void PlanWriter::combine_partially(Region into) {
  combine(into, false);
  plan_.combines.back().finish = false;
}

void PlanWriter::add_operand(Region from, ProgressIndex after) {
  plan_.operands.push_back({from, after});
  ++plan_.combines.back().operand_count;
}

void PlanWriter::combine_in_rank_order(Region own, Region into, int stride, bool after_sends) {
  const Region contributions = take_scratch(static_cast<std::size_t>(size_ - 1) * own.bytes);
  combine(into, after_sends);
  for (int r = 0; r < size_; ++r) add_operand(own, kAtOnce);
  Combine::Operand* const operands = &plan_.operands[plan_.combines.back().first_operand];
  int slot = 0;
  const auto arrives = [&](int rank) {
    if (rank == rank_) return;
    const std::size_t offset = contributions.offset_bytes + static_cast<std::size_t>(slot) * own.bytes;
    operands[rank] = {{Buffer::scratch, offset, own.bytes}, slot * stride};
    ++slot;
  };
  if (call_.algorithm == Algorithm::doubling) return for_arrivals(arrives);
  for (int r = 0; r < size_; ++r) arrives(r);
}

template <class Visit>
void PlanWriter::for_arrivals(Visit visit) const {
  const int core = core_size(size_);
  if (rank_ < core) return for_gathered(rank_, core, size_, visit);
  // A rank behind the core gets what the other one has gathered, and that one sends what came last first.
  for_gathered_backwards(rank_ - core, core, size_, visit);
}

Region PlanWriter::take_scratch(std::size_t bytes) {
  const Region region{Buffer::scratch, plan_.scratch_bytes, bytes};
  plan_.scratch_bytes += bytes;
  return region;
}

}  // namespace ringlet
