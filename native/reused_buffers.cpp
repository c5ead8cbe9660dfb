#include "native/reused_buffers.hpp"

#include <algorithm>
#include <bit>

namespace ringlet::native {

namespace {

/// Gathering takes as long as some uses save.
constexpr std::uint64_t kFirstGathered = 4;

}  // namespace

void ReusedBuffers::used(ConstBytes buffer) {
  if (buffer.size() < kLongBytes) return;
  const std::uint64_t uses = count(buffer);
  if (uses < kFirstGathered || !std::has_single_bit(uses)) return;
  if (gather_(buffer)) return;
  const std::lock_guard lock(mutex_);
  gathers_ = false;
}

std::uint64_t ReusedBuffers::count(ConstBytes buffer) {
  const std::lock_guard lock(mutex_);
  if (!gathers_) return 0;
  auto seen =
      std::find_if(seen_.begin(), seen_.end(), [&](const Seen& one) { return one.data == buffer.data() && one.size == buffer.size(); });
  if (seen == seen_.end()) {
    seen = std::min_element(seen_.begin(), seen_.end(), [](const Seen& one, const Seen& other) { return one.last_use < other.last_use; });
    *seen = {buffer.data(), buffer.size()};
  }
  seen->last_use = ++calls_;
  return ++seen->uses;
}

}  // namespace ringlet::native
