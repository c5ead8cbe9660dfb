#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>

#include "core/base/bytes.hpp"

namespace ringlet::native {

/// Finds the long buffers that calls have again and again, and gathers them into huge pages. Another process that reads a buffer through
/// the system looks up each of its pages. Any thread.
class ReusedBuffers {
 public:
  /// Of shorter ones too little is in whole huge pages.
  static constexpr std::size_t kLongBytes = 4 << 20;

  /// Returns false where it is not worth calling again.
  using Gather = std::function<bool(ConstBytes)>;
  explicit ReusedBuffers(Gather gather) : gather_(std::move(gather)) {}

  /// A call has this buffer. Gathers it at its fourth use, and at each second power of two after that: there may be other memory at this
  /// address by now, and gathering what is gathered already costs next to nothing.
  void used(ConstBytes buffer);

 private:
  struct Seen {
    const std::byte* data = nullptr;
    std::size_t size = 0;
    std::uint64_t uses = 0, last_use = 0;
  };
  /// Returns how often this buffer was used, this time included.
  std::uint64_t count(ConstBytes buffer);

  const Gather gather_;
  std::mutex mutex_;
  std::array<Seen, 128> seen_{};  // those that were used last
  std::uint64_t calls_ = 0;
  bool gathers_ = true;
};

}  // namespace ringlet::native
