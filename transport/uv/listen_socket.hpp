#pragma once

#include <functional>

#include "transport/uv/loop_state.hpp"

namespace ringlet::uv {

/// A listening socket, of whichever kind, that accepts. If the process or the system has no free descriptor, it pauses, and connections
/// stay in the backlog. Deletes itself after abandon() or drop().
class ListenSocket final : public SocketWatch {
 public:
  /// `on_accept` owns each socket that it gets.
  ListenSocket(LoopState& loop, std::function<void(int accepted)> on_accept) : SocketWatch(loop), on_accept_(std::move(on_accept)) {}

  /// Takes over a socket that listens and returns 0, or returns a uv error and leaves it to the caller.
  int open(int socket);
  void abandon();
  using SocketWatch::socket;

 private:
  void on_ready(int events, bool broken) override;
  void pause();

  std::function<void(int accepted)> on_accept_;
  TimerId resume_timer_ = 0;
};

}  // namespace ringlet::uv
