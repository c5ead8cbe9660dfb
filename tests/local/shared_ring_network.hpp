#pragma once

#include <unistd.h>

#include <array>
#include <deque>
#include <memory>

#include "core/ports/poll_source.hpp"
#include "transport/local/ring_memory.hpp"
#include "transport/local/shared_ring_link.hpp"

namespace ringlet::test {

/// Whether this system has memory that two processes can share.
inline bool shares_memory() { return local::make_shared_memory(local::kRingMemoryBytes) != nullptr; }

/// Both ends' views of the same memory.
inline std::array<std::unique_ptr<local::SharedMemory>, 2> two_views() {
  auto one = local::make_shared_memory(local::kRingMemoryBytes);
  auto two = local::open_shared_memory(static_cast<std::uint64_t>(::getpid()), one->descriptor(), local::kRingMemoryBytes);
  return {std::move(one), std::move(two)};
}

/// Turns both ends of each connection into shared-ring links. The first link dialled and the first accepted are one connection, and so on.
class SharedRingLinks {
 public:
  PollSources& sources;

  std::unique_ptr<Link> wrap(std::unique_ptr<Link> link, std::size_t side) {
    const std::size_t index = counts_[side]++;
    while (views_.size() <= index) views_.push_back(two_views());
    return std::make_unique<local::SharedRingLink>(std::move(link), std::move(views_[index][side]),
                                                   side == 0 ? LinkSide::dialler : LinkSide::acceptor, sources);
  }

  explicit SharedRingLinks(PollSources& loop) : sources(loop) {}

 private:
  std::deque<std::array<std::unique_ptr<local::SharedMemory>, 2>> views_;
  std::array<std::size_t, 2> counts_{};
};

}  // namespace ringlet::test
