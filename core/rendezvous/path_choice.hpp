#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/wire/control.hpp"

namespace ringlet {

/// Which of several measured ways to a peer is taken: the fastest by round trip and bandwidth, as a message of 1 MiB has it; of those that
/// are nearly as fast a wired one before a wireless one, then the one with the higher nominal speed, then the first. Not of none.
std::size_t choose_path(std::span<const wire::Path> paths);

/// The addresses at which a dialler tries a peer: its endpoints, then the one at which it was seen or named, each once.
std::vector<wire::Endpoint> targets_of(const wire::Member& member);

/// The way between two interfaces: as good as the worse one.
wire::Path path_between(const wire::Endpoint& dialler, const wire::Endpoint& acceptor);

/// Whether both are known to connect the same two interfaces, so that they are one way to the peer.
bool is_same_way(const wire::Path& one, const wire::Path& other);

/// Whether the ranks look for a faster link with rank 0 than the one over which they joined: where it can be reached elsewhere, too. The
/// same on both sides.
bool is_worth_a_race(const wire::Member& rank0);

}  // namespace ringlet
