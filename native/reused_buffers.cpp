#include "native/reused_buffers.hpp"

#include <algorithm>
#include <bit>

namespace ringlet::native {

namespace {

/// Gathering takes as long as some uses save.
constexpr std::uint64_t kFirstGathered = 4;
constexpr std::size_t kMostBuffers = 1024;

}  // namespace

void ReusedBuffers::used(ConstBytes buffer) {
  const ConstBytes step = next_step(buffer);
  if (step.empty() || gather_(step)) return;
  const std::lock_guard lock(mutex_);
  gathers_ = false;
}

ConstBytes ReusedBuffers::next_step(ConstBytes buffer) {
  const std::lock_guard lock(mutex_);
  if (!gathers_) return {};
  auto seen =
      std::find_if(seen_.begin(), seen_.end(), [&](const Seen& one) { return one.data == buffer.data() && one.size == buffer.size(); });
  if (seen == seen_.end() && seen_.size() < kMostBuffers) seen = seen_.emplace(seen_.end());
  if (seen == seen_.end())
    seen = std::min_element(seen_.begin(), seen_.end(), [](const Seen& one, const Seen& other) { return one.last_use < other.last_use; });
  if (seen->data != buffer.data() || seen->size != buffer.size()) *seen = {buffer.data(), buffer.size()};
  seen->last_use = ++calls_;
  if (++seen->uses < kFirstGathered) return {};
  if (std::has_single_bit(seen->uses)) seen->gathered = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data()) + seen->gathered;
  const ConstBytes left = buffer.subspan(seen->gathered);
  const ConstBytes step = left.first(std::min(left.size(), kStepBytes - address % kStepBytes));
  seen->gathered += step.size();
  return step;
}

}  // namespace ringlet::native
