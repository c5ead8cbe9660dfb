#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/unidentified_peer.hpp"

namespace ringlet {

/// The processes that knock at the door of a rank and wait until its group admits them, in the order in which they came. Belongs to the
/// loop's thread.
class Knocks {
 public:
  static constexpr std::size_t kMaxWaiting = 64;

  /// The loop outlives it. `on_waiting` gets the number of processes that wait, each time that it may have changed.
  Knocks(EventLoop& loop, const SessionOptions& session, std::function<void(std::size_t waiting)> on_waiting = {})
      : loop_(loop), session_(session), on_waiting_(std::move(on_waiting)), closing_(loop, session) {}

  /// From now on processes may wait here. Before, this process is not in a group itself, and sends them to the next door.
  void open() { open_ = true; }
  /// The process is not in the group any more: those that wait, and those that come, go to the next door.
  void shut();
  /// Takes over an authenticated link.
  void receive(std::unique_ptr<Link> link);
  std::size_t waiting() const;
  /// Chooses those that wait now, at most so many, for the tickets that come next, and returns their number. `on_gone` runs from the loop,
  /// with the process' name, when one of them has gone before let_go().
  std::size_t choose(std::size_t most, std::function<void(const std::string& name)> on_gone);
  /// Gives the processes that were chosen their tickets: the first one has the rank of `first`, the second one the next, and so on.
  void send_tickets(wire::Ticket first);
  /// Closes the connections of those that were chosen. Any that is not in the group then knocks again.
  void let_go();

 private:
  enum class State : std::uint8_t { silent, waiting, chosen };
  struct Peer {
    std::unique_ptr<UnidentifiedPeer> connection;
    State state = State::silent;
    std::string name{};  // for people
  };
  using Peers = std::list<Peer>;

  void on_message(UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message);
  void reject(Peers::iterator peer, const Status& reason);
  void send_on(Peers::iterator peer);
  void remove(Peers::iterator peer);
  std::unique_ptr<Session> take(Peers::iterator peer);
  void tell_waiting();
  Peers::iterator find(const UnidentifiedPeer& connection);

  EventLoop& loop_;
  const SessionOptions session_;
  const std::function<void(std::size_t waiting)> on_waiting_;
  ClosingSessions closing_;
  bool open_ = false;
  Peers peers_;  // those that have knocked in the order of their knocks
  std::function<void(const std::string& name)> on_gone_;
};

}  // namespace ringlet
