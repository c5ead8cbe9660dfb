#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ringlet::local {

/// A random word chosen by the peer. Only processes that the peer talks to can know it.
using MarkWord = std::array<std::byte, 16>;

// "[ADDRESS%INTERFACE]:PORT": an IPv6 address has up to 39 characters, an interface's name up to 15. Two names and what is between them.
inline constexpr std::size_t kLongestName = 1 + 39 + 1 + 15 + 1 + 6;
inline constexpr std::size_t kEndsBytes = 128;
static_assert(kEndsBytes >= 2 * kLongestName + 1);

/// A place in this process' memory that the peer reads after each read of lent memory. If its word and epoch have not changed, the memory
/// that was read before was still lent. Memory that was given back to the system does not hold the word.
struct Mark {
  MarkWord word{};
  std::atomic<std::uint64_t> epoch{1};
  std::array<char, kEndsBytes> ends{};  // the names of the connection's two ends, the dialler's first, as this process knows them
};
inline constexpr std::size_t kMarkHeadBytes = sizeof(MarkWord) + sizeof(std::uint64_t);  // the part that is read each time
static_assert(sizeof(Mark) == kMarkHeadBytes + kEndsBytes && std::atomic<std::uint64_t>::is_always_lock_free &&
              std::is_standard_layout_v<Mark>);

/// The place of a peer's mark, and the word that it holds.
struct PeerMark {
  std::uint64_t process = 0;
  std::uint64_t address = 0;
  MarkWord word{};
};

}  // namespace ringlet::local
