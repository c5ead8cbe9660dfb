#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ringlet::local {

/// A word that the peer has chosen, so that only a process that it talks to can hold it.
using MarkWord = std::array<std::byte, 16>;

/// Stands in this process' memory, where the peer reads it behind everything else: unchanged, it says that what was read before it was
/// still lent. Memory that was given back can hold anything but the word.
struct Mark {
  MarkWord word{};
  std::atomic<std::uint64_t> epoch{1};
  std::array<char, 64> ends{};  // of the connection, the dialler's name first: what this process itself says that it is at one end of
};
inline constexpr std::size_t kMarkHeadBytes = sizeof(MarkWord) + sizeof(std::uint64_t);  // what is read again and again
static_assert(sizeof(Mark) == kMarkHeadBytes + 64 && std::atomic<std::uint64_t>::is_always_lock_free && std::is_standard_layout_v<Mark>);

/// Where a peer's mark stands, and the word that it holds.
struct PeerMark {
  std::uint64_t process = 0;
  std::uint64_t address = 0;
  MarkWord word{};
};

}  // namespace ringlet::local
