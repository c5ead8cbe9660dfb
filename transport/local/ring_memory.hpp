#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/ports/shortcut.hpp"
#include "transport/local/mark.hpp"
#include "transport/local/shared_memory.hpp"

namespace ringlet::local {

/// The bytes of a ring. Small enough that what one process writes is still in a cache when the other reads it.
inline constexpr std::size_t kRingBytes = 128 << 10;

/// One direction of a SharedRingLink in shared memory. The positions count all bytes since the start.
struct RingHead {
  alignas(64) std::atomic<std::uint64_t> written;  // by the writer; the bytes before it are there
  std::atomic<std::uint32_t> ended;                // by the writer: nothing follows what is written
  alignas(64) std::atomic<std::uint64_t> read;     // by the reader; the bytes before it may be overwritten
};

/// What a side that blocks waits for. The other one takes it away (writes 0) and sends a byte over the link below.
enum class Awaits : std::uint32_t { nothing = 0, bytes = 1, room = 2, either = 3 };

/// The beginning of the shared memory of a link; the bytes of both rings follow, the dialler's first. The dialler makes it.
struct RingMemory {
  MarkWord acceptor_word;             // the acceptor's random word, written by the dialler
  MarkWord dialler_word;              // the dialler's random word, written by the acceptor
  std::array<char, kEndsBytes> ends;  // the names of the connection's two ends, the dialler's first, as the dialler knows them
  std::array<RingHead, 2> rings;
  struct alignas(64) Side {
    std::atomic<std::uint32_t> awaits;
  };
  std::array<Side, 2> sides;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free &&
              std::is_standard_layout_v<RingMemory>);

inline constexpr std::size_t kRingMemoryHeadBytes = 4096;
inline constexpr std::size_t kRingMemoryBytes = kRingMemoryHeadBytes + 2 * kRingBytes;
static_assert(sizeof(RingMemory) <= kRingMemoryHeadBytes && (kRingBytes & (kRingBytes - 1)) == 0);

inline RingMemory& ring_memory(SharedMemory& memory) { return *reinterpret_cast<RingMemory*>(memory.bytes().data()); }

}  // namespace ringlet::local
