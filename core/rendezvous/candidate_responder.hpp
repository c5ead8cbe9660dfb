#pragma once

#include <cstddef>
#include <optional>

#include "core/wire/control.hpp"

namespace ringlet {

/// The acceptor's side of one link in a link race (link_race.hpp). It sends probes back, accepts the nomination, and waits until the
/// dialler has confirmed the acceptance.
class CandidateResponder {
 public:
  /// The reaction to a message of the dialler's.
  struct Reaction {
    enum class Kind { answer, confirmed, violation };
    Kind kind = Kind::violation;
    wire::ControlMessage answer{};  // set for Kind::answer
  };

  CandidateResponder(int own_rank, int peer) : own_rank_(own_rank), peer_(peer) {}

  int peer() const { return peer_; }
  /// The link's path as the dialler has measured it. Only valid once the link is confirmed.
  const wire::Path& path() const { return path_; }
  Reaction on_message(const wire::ControlMessage& message);

 private:
  const int own_rank_, peer_;
  std::size_t probes_ = 0;
  bool nominated_ = false;
  wire::Path path_{};
};

}  // namespace ringlet
