#pragma once

#include <algorithm>

#include "simd/kernels.hpp"
#include "tests/simd/samples.hpp"

namespace ringlet::test {

/// Calls `visit(kernels, scalar)` for each target but the scalar one.
template <class Visit>
void for_each_target(Visit visit) {
  const auto all = simd::available();
  for (const simd::Kernels* kernels : all.subspan(1)) visit(*kernels, *all.front());
}

inline constexpr std::size_t kMaxShift = 64;

/// Elements at an address with a chosen misalignment, with guard bytes on both sides.
class Placed {
 public:
  Placed(const Bytes& elements, std::size_t shift)
      : shift_(shift), size_(elements.size()), memory_(elements.size() + 3 * kMaxShift, kGuard) {
    std::copy(elements.begin(), elements.end(), memory_.begin() + begin());
  }
  std::byte* data() { return memory_.data() + begin(); }
  Bytes elements() const { return Bytes(memory_.begin() + begin(), memory_.begin() + begin() + static_cast<std::ptrdiff_t>(size_)); }
  bool guards_hold() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      if ((at < begin() || at >= begin() + static_cast<std::ptrdiff_t>(size_)) && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr std::byte kGuard{0xa5};
  std::ptrdiff_t begin() const { return static_cast<std::ptrdiff_t>(kMaxShift + shift_); }

  std::size_t shift_;
  std::size_t size_;
  Bytes memory_;
};

}  // namespace ringlet::test
