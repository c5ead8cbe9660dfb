#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"

namespace ringlet::native {

/// Finds the long buffers that calls have again and again, and gathers them into huge pages. Another process that reads a buffer through
/// the system looks up each of its pages. Any thread.
class ReusedBuffers {
 public:
  /// Of buffers that are not long too little is in whole huge pages.
  static bool is_long(ConstBytes buffer) { return buffer.size() >= 4 << 20; }
  /// A call waits while one step is gathered. Steps end at multiples of this, so that no huge page is cut.
  static constexpr std::size_t kStepBytes = 16 << 20;

  /// Returns false where it is not worth calling again.
  using Gather = std::function<bool(ConstBytes)>;
  explicit ReusedBuffers(Gather gather) : gather_(std::move(gather)) {}

  /// A call has this long buffer. From its fourth use on gathers a step of it at each use, and all again from each second power of two on:
  /// there may be other memory at this address by now, and gathering what is gathered already costs next to nothing.
  void used(ConstBytes buffer);

 private:
  struct Seen {
    const std::byte* data = nullptr;
    std::size_t size = 0, gathered = 0;
    std::uint64_t uses = 0, last_use = 0;
  };
  /// Counts a use of this buffer, and returns what of it is to be gathered now.
  ConstBytes next_step(ConstBytes buffer);

  const Gather gather_;
  std::mutex mutex_;
  std::vector<Seen> seen_;  // those that were used last
  std::uint64_t calls_ = 0;
  bool gathers_ = true;
};

}  // namespace ringlet::native
