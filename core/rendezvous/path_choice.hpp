#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/wire/control.hpp"

namespace ringlet {

/// Chooses one of the measured paths to a peer, of which there is at least one: the fastest for a message of 1 MiB, by round trip and time
/// per byte. Of those that are nearly as fast, a wired one is preferred to a wireless one, then the one with the higher nominal speed, then
/// the first.
std::size_t choose_path(std::span<const wire::Path> paths);

/// The addresses at which a dialler tries a peer: its endpoints, then the address from which it joined or by which it is listed, each once.
std::vector<wire::Endpoint> targets_of(const wire::Member& member);

/// The path between two interfaces. It has the kind and the speed of the worse one.
wire::Path path_between(const wire::Endpoint& dialler, const wire::Endpoint& acceptor);

/// Whether both are known to connect the same two interfaces, which makes them the same path to the peer.
bool is_same_way(const wire::Path& one, const wire::Path& other);

/// Whether the ranks look for a faster link with rank 0 than the one over which they joined: they do where it has several addresses. Both
/// sides decide alike.
bool is_worth_a_race(const wire::Member& rank0);

}  // namespace ringlet
