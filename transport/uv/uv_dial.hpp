#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/ports/network.hpp"
#include "transport/uv/loop_state.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::uv {

class ConnectSocket;

/// One dial: looks up the host, then tries its addresses one after the other. It deletes itself after the callback, or after abandon().
class Dial {
 public:
  /// `on_end` runs before `on_dialled`. Neither runs inside this call or after abandon().
  static Dial* start(LoopState& loop, const Address& address, Duration timeout, Dialled on_dialled, std::function<void(Dial*)> on_end);
  /// Whether the machine itself has said that nobody listens there, at each of its addresses. Once the dial has ended.
  bool refused() const { return refused_ && !candidates_.empty() && next_candidate_ == candidates_.size(); }
  /// Ends the dial without running a callback.
  void abandon();

 private:
  friend class ConnectSocket;

  Dial(LoopState& loop, const Address& address, Duration timeout, Dialled on_dialled, std::function<void(Dial*)> on_end);
  ~Dial() = default;
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  void look_up();
  void looked_up(int error, const addrinfo* found);
  void try_next();
  void attempt_ended(int error, int socket);
  void attempt_timed_out();
  void set_timer(Duration delay, void (Dial::*member)());
  void finish(Result<std::unique_ptr<Link>> outcome);
  void stop();
  void free_if_unused();
  std::string name_of_attempt() const;

  LoopState& loop_;
  Address address_;
  Duration timeout_;
  Instant deadline_;
  Dialled on_dialled_;
  std::function<void(Dial*)> on_end_;
  std::vector<SocketAddress> candidates_;
  std::size_t next_candidate_ = 0;
  ConnectSocket* attempt_ = nullptr;
  TimerId timer_ = 0;
  uv_getaddrinfo_t request_{};
  bool refused_ = true;  // all attempts so far
  bool looking_up_ = false;
  bool ended_ = false;
};

}  // namespace ringlet::uv
