#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/bytes.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::local {

/// Memory of a fixed size that two processes of one machine share. No file system holds it: it exists as long as one of the two has it
/// mapped or has its descriptor. A process that is forked off does not have it.
class SharedMemory {
 public:
  explicit SharedMemory(Bytes bytes, UniqueFd descriptor = {}) : bytes_(bytes), descriptor_(std::move(descriptor)) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Bytes bytes() const { return bytes_; }
  /// The number by which a peer opens it; -1 after close_descriptor() and on the peer's side.
  int descriptor() const { return descriptor_.get(); }
  /// From now on no other process can open it.
  void close_descriptor() { descriptor_.reset(); }

 private:
  const Bytes bytes_;
  UniqueFd descriptor_;
};

// Both return null where the system has no such memory, refuses it, or has run out of memory or descriptors.

/// Makes zeroed memory of `bytes` bytes, a multiple of the size of a page.
std::unique_ptr<SharedMemory> make_shared_memory(std::size_t bytes);
/// Opens memory that another process has made. Returns null as well where this is not memory of exactly this size whose size cannot change,
/// so that reading it can never fail.
std::unique_ptr<SharedMemory> open_shared_memory(std::uint64_t process, int descriptor, std::size_t bytes);

}  // namespace ringlet::local
