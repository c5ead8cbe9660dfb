#pragma once

#include <cstdint>
#include <memory>

#include "core/base/bytes.hpp"

namespace ringlet::sim {

/// A queue of bytes in a circular buffer that grows by doubling. It allocates nothing before the first byte.
class ByteQueue {
 public:
  std::size_t size() const { return size_; }
  void append(ConstBytes bytes);
  /// Removes `out.size()` bytes from the front and copies them to `out`. There must be as many.
  void take(Bytes out);
  void drop_front(std::size_t bytes);
  void drop_back(std::size_t bytes) { size_ -= bytes; }
  void release();

 private:
  void grow(std::size_t least);
  void copy_front(Bytes out) const;

  std::unique_ptr<std::byte[]> ring_;
  std::size_t capacity_ = 0;  // 0 or a power of two
  std::size_t front_ = 0;
  std::size_t size_ = 0;
};

/// Returns a hash of the content, for the trace.
std::uint64_t hash_bytes(ConstBytes bytes);

}  // namespace ringlet::sim
