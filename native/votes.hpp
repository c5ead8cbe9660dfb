#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

namespace ringlet::native {

/// What this rank knows of the calls of agree(), which are numbered from 1. While a world is formed anew the ranks exchange it, so that a
/// call in which a rank was lost has one result, and the next call has the same number everywhere. Any thread, which locks `mutex` for all
/// members.
class Votes {
 public:
  /// What the others are told: the number of calls with a result, the results of the last ones (the last in bit 0), whether this rank is in
  /// a call without result, which is the next one, and its part of that.
  using Told = std::array<std::int64_t, 4>;

  /// Begins the next call.
  void call(bool own);
  /// The call has failed without a result.
  void withdraw() { under_way_ = false; }
  /// The call has this result on all ranks.
  void set_result(bool value);
  /// The result of the call that began last.
  bool answer() const { return answer_; }

  Told tell() const { return {settled_, static_cast<std::int64_t>(results_), under_way_, own_}; }
  /// The index of the first whose number of calls cannot be, or -1.
  static int blame(std::span<const Told> told);
  /// Takes what all ranks have told, in any order, where none is to blame; every rank takes the same. What one knows of a call holds for
  /// all. Where none knows the result of a call, ranks that are not in it count as false.
  void settle(std::span<const Told> told, std::uint32_t epoch);
  /// The epoch at whose beginning that was done last.
  std::uint32_t epoch() const { return epoch_; }

  std::mutex mutex;

 private:
  void append(bool value);

  std::int64_t settled_ = 0;
  std::uint64_t results_ = 0;
  std::uint32_t epoch_ = 0;
  bool under_way_ = false, own_ = false, answer_ = false;
};

}  // namespace ringlet::native
