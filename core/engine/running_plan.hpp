#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/engine/options.hpp"
#include "core/engine/tasks.hpp"
#include "core/plan/plan.hpp"

namespace ringlet {

/// A plan that is being run, with the memory that it works on, its arithmetic, and the progress of each step. The object is used for one
/// run after another; from the second run of the same shape on it allocates nothing.
class RunningPlan {
 public:
  /// The finished prefix of a step.
  struct Prefix {
    std::size_t bytes = 0;
    bool done = false;
  };

  /// Computes the plan of a task for this rank, in a group of this topology. The task and its buffers are borrowed as long as it runs.
  void begin(const CollectiveTask& task, const WorldOptions& options, const Topology& topology);

  const Call& call() const { return task_->call; }
  const Plan& steps() const { return steps_; }
  std::size_t element_bytes() const { return call().element_bytes(); }
  std::byte* writable(const Region& region) const;
  const std::byte* readable(const Region& region) const;

  Prefix progress(ProgressIndex index) const {
    return index == kAtOnce ? Prefix{SIZE_MAX, true} : progress_[static_cast<std::size_t>(index)];
  }
  /// The first `bytes` of a receive have come.
  void set_received(std::uint32_t receive, std::size_t bytes) { progress_[receive].bytes = bytes; }
  void set_done(std::uint32_t receive) { progress_[receive].done = true; }

  /// Reduces whole elements that have come for a receive into their place, `offset` bytes into its region.
  void reduce_received(const Receive& receive, std::size_t offset, ConstBytes received) const;
  /// The next combine to be run; null once all are done.
  const Combine* next_combine() const { return combined_ < steps_.combines.size() ? &steps_.combines[combined_] : nullptr; }
  /// Runs the next combine as far as its operands have come. Returns true when it is done.
  bool run_next_combine();

 private:
  void combine_block(const Combine& combine, std::size_t offset, std::size_t bytes);
  /// Where the result of the bytes from `offset` on stands. Regions are counted in the bytes of blocks, also where the result is decoded.
  std::byte* result_of(const Combine& combine, std::size_t offset) const;
  /// The place in the whole buffer, in numbers, of the result of the bytes from `offset` on.
  std::size_t first_number(const Combine& combine, std::size_t offset) const;
  void keep_left(std::size_t first, std::byte* sum, const std::byte* blocks, std::size_t numbers) const;
  /// The numbers that an element holds: those of a block, else 1.
  std::size_t numbers_per_element() const { return call().blocks ? block_elements(*call().blocks) : 1; }
  std::size_t piece_bytes() const { return simd::kPieceElements / numbers_per_element() * element_bytes(); }
  void widen(std::byte* out, const std::byte* in, std::size_t numbers) const;
  void narrow(std::byte* out, const std::byte* in, std::size_t numbers) const;
  void finish_piece(std::byte* data, std::size_t count) const;

  Plan steps_;
  const CollectiveTask* task_ = nullptr;
  std::vector<std::byte> scratch_;
  std::vector<Prefix> progress_;  // of the receives, then of the combines
  std::size_t combined_ = 0;      // combines that are done
  const simd::Kernels* kernels_ = nullptr;
  simd::ReduceFn reduce_ = nullptr;
  simd::ScaleFn divide_ = nullptr;
  simd::MapFn canonical_nan_ = nullptr;
};

}  // namespace ringlet
