#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "core/base/alive_guard.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"
#include "core/ports/shortcut.hpp"
#include "core/rendezvous/handshake.hpp"

namespace ringlet {

/// The timeouts of a dial's parts.
struct DialTimes {
  Duration connect = Duration::seconds(4);  // so that the first report of a meeting, after 5 s, can say what was not answered
  Duration handshake = Duration::seconds(10);
};

/// Dials authenticated links. Belongs to the loop's thread. Destruction drops all attempts that are under way without a call.
class Dialler {
 public:
  /// All arguments outlive it. `shortcut` is the shortcut that it asks for; null where it asks for none.
  Dialler(EventLoop& loop, Network& network, Authenticator& authenticator, Shortcut* shortcut = nullptr);
  ~Dialler();
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;

  /// `on_dialled` runs once, from the loop, with a link, which it starts before it returns, or with the reason: `timed_out` or `peer_lost`
  /// of the network, or a status of DialHandshake.
  void dial(const Address& address, const DialTimes& times, const LinkRequest& request, Dialled on_dialled);

 private:
  struct Attempt {
    std::unique_ptr<DialHandshake> handshake;
    Dialled on_dialled;
    TimerId timer = 0;
    bool shortcut = false;  // whether one was asked for
  };

  void open(std::unique_ptr<Link> link, Duration timeout, LinkRequest request, Dialled on_dialled);
  void end(std::uint64_t id, Result<std::unique_ptr<Link>> outcome);

  EventLoop& loop_;
  Network& network_;
  Authenticator& authenticator_;
  Shortcut* const shortcut_;
  std::map<std::uint64_t, Attempt> attempts_;
  std::uint64_t last_id_ = 0;
  AliveGuard guard_;
};

}  // namespace ringlet
