#include "core/engine/running_plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/plan/make_plan.hpp"

namespace ringlet {

namespace {

/// Combining waits until this many bytes, or all, have come, so that a kernel's call is worth its cost.
constexpr std::size_t kCombineBytes = 32 << 10;

}  // namespace

void RunningPlan::begin(const CollectiveTask& task, const WorldOptions& options, const Topology& topology) {
  task_ = &task;
  const Call& call = task.call;
  kernels_ = options.kernels;
  reduce_ = kernels_->reduce(call.dtype, call.op);
  divide_ = call.divisor != 1.0 ? kernels_->divide(call.dtype) : nullptr;
  canonical_nan_ = kernels_->canonical_nan(call.dtype);
  make_plan(call, options.rank, options.size, topology, task.input.data() == task.output.data(), steps_);
  if (scratch_.size() < steps_.scratch_bytes) scratch_.resize(steps_.scratch_bytes);
  progress_.assign(steps_.receives.size() + steps_.combines.size(), {});
  combined_ = 0;
  if (steps_.copy_from.bytes > 0 && readable(steps_.copy_from) != writable(steps_.copy_to))
    std::memcpy(writable(steps_.copy_to), readable(steps_.copy_from), steps_.copy_from.bytes);
}

std::byte* RunningPlan::writable(const Region& region) const {
  std::byte* base = region.buffer == Buffer::output ? task_->output.data() : const_cast<std::byte*>(scratch_.data());
  return base + region.offset_bytes;
}

const std::byte* RunningPlan::readable(const Region& region) const {
  if (region.buffer == Buffer::input) return task_->input.data() + region.offset_bytes;
  return writable(region);
}

void RunningPlan::reduce_received(const Receive& receive, std::size_t offset, ConstBytes received) const {
  std::byte* const into = writable(receive.into) + offset;
  const std::byte* const operand = readable(receive.operand) + offset;
  const std::size_t step = receive.finish ? piece_bytes() : received.size();
  for (std::size_t done = 0; done < received.size(); done += step) {
    const std::size_t count = std::min(step, received.size() - done) / element_bytes();
    reduce_(into + done, received.data() + done, operand + done, count);
    if (receive.finish) finish_piece(into + done, count);
  }
}

bool RunningPlan::run_next_combine() {
  const Combine& combine = steps_.combines[combined_];
  Prefix& done = progress_[steps_.receives.size() + combined_];
  std::size_t ready = combine.into.bytes;
  bool all = true;
  for (std::uint32_t i = 0; i < combine.operand_count; ++i) {
    const Prefix operand = progress(steps_.operands[combine.first_operand + i].after);
    ready = std::min(ready, operand.bytes);
    all &= operand.done;
  }
  ready -= ready % element_bytes();
  if (!all && ready - done.bytes < kCombineBytes) return false;
  while (done.bytes < ready) {
    const std::size_t bytes = std::min(piece_bytes(), ready - done.bytes);
    combine_block(combine, done.bytes, bytes);
    done.bytes += bytes;
  }
  done.done = all;
  if (all) ++combined_;
  return all;
}

// f16, bf16 and blocks are widened, reduced over all ranks, divided in f32 and, unless they stay decoded, rounded once.
void RunningPlan::combine_block(const Combine& combine, std::size_t offset, std::size_t bytes) {
  const std::size_t numbers = bytes / element_bytes() * numbers_per_element();
  alignas(64) std::array<std::byte, simd::kPieceElements * detail::kLargestElementBytes> combined;
  const bool is_widened = call().blocks || (is_narrow(call().dtype) && (call().op == ReduceOp::sum || call().op == ReduceOp::prod));
  const auto operand = [&](std::uint32_t i) { return readable(steps_.operands[combine.first_operand + i].from) + offset; };
  std::byte* into = result_of(combine, offset);
  if (!is_widened) {
    // The result may take the place of an operand, which is read before that.
    reduce_(combined.data(), operand(0), operand(1), numbers);
    for (std::uint32_t i = 2; i < combine.operand_count; ++i) reduce_(combined.data(), combined.data(), operand(i), numbers);
    std::memcpy(into, combined.data(), bytes);
    if (combine.finish) finish_piece(into, numbers);
    return;
  }
  alignas(64) std::array<std::byte, simd::kPieceElements * sizeof(float)> wide;
  std::byte* const sum = call().keeps_decoded() ? into : combined.data();
  const auto reduce_f32 = kernels_->reduce(DType::f32, call().op);
  widen(sum, operand(0), numbers);
  for (std::uint32_t i = 1; i < combine.operand_count; ++i) {
    widen(wide.data(), operand(i), numbers);
    reduce_f32(sum, sum, wide.data(), numbers);
  }
  if (combine.finish && divide_ != nullptr) kernels_->divide(DType::f32)(sum, numbers, call().divisor);
  if (call().keeps_decoded()) return canonical_nan_(into, numbers);
  narrow(into, sum, numbers);
  if (task_->left != nullptr) keep_left(first_number(combine, offset), sum, into, numbers);
}

/// `sum` has been rounded to `blocks`.
void RunningPlan::keep_left(std::size_t first, std::byte* sum, const std::byte* blocks, std::size_t numbers) const {
  const simd::BlocksLeaveFn left_by = kernels_->left_by(*call().blocks);
  left_by(sum, sum, blocks, numbers);
  task_->left->add(first, numbers, reinterpret_cast<const float*>(sum), *kernels_);
}

std::size_t RunningPlan::first_number(const Combine& combine, std::size_t offset) const {
  return (combine.into.offset_bytes + offset) / element_bytes() * numbers_per_element();
}

std::byte* RunningPlan::result_of(const Combine& combine, std::size_t offset) const {
  if (!call().keeps_decoded()) return writable(combine.into) + offset;
  return task_->output.data() + first_number(combine, offset) * sizeof(float);
}

void RunningPlan::widen(std::byte* out, const std::byte* in, std::size_t numbers) const {
  if (call().blocks) return kernels_->decode(*call().blocks)(out, in, numbers);
  kernels_->cast(call().dtype, DType::f32)(out, in, numbers);
}

void RunningPlan::narrow(std::byte* out, const std::byte* in, std::size_t numbers) const {
  if (call().blocks) return kernels_->encode(*call().blocks)(out, in, numbers);
  kernels_->cast(DType::f32, call().dtype)(out, in, numbers);
  canonical_nan_(out, numbers);
}

void RunningPlan::finish_piece(std::byte* data, std::size_t count) const {
  if (divide_ != nullptr) divide_(data, count, call().divisor);
  // The payloads of NaNs differ between CPUs, but all ranks need the same bits.
  if (canonical_nan_ != nullptr) canonical_nan_(data, count);
}

}  // namespace ringlet
