#include "core/engine/options.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/wire/call_record.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

WorldOptions WorldOptions::within_limits() const {
  RINGLET_CHECK(kernels != nullptr && size >= 1 && rank >= 0 && rank < size && guests >= 0 && guests < size);
  WorldOptions bounded = *this;
  constexpr std::size_t kElement = detail::kLargestElementBytes;
  static_assert(kMaxDataPayload % kElement == 0);
  bounded.segment_bytes = std::clamp<std::size_t>(segment_bytes - segment_bytes % kElement, kElement, kMaxDataPayload);
  // A smaller window has no room for the longest call, and an operation could not begin before its peer's.
  const std::size_t longest_call = EarlyCost::kRecordBytes + max_call_record_bytes(size) - kCallRecordBytes;
  bounded.eager_window_bytes = std::max(eager_window_bytes, longest_call);
  if (early_limits.record_bytes == 0) bounded.early_limits = EarlyBudget::limits_in_world(size);
  bounded.early_limits.record_bytes = std::max(bounded.early_limits.record_bytes, longest_call);
  bounded.max_groups = std::max<std::size_t>(max_groups, 1);
  bounded.set_topology(Topology::of_world(size, guests, leaf_limits));
  return bounded;
}

}  // namespace ringlet
