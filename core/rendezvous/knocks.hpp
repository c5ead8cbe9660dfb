#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/unidentified_peer.hpp"

namespace ringlet {

/// The processes and guests that knock at the door of a rank and wait until its group admits them, in the order in which they came. Guests
/// are admitted together, since each change of the group sends away those that are in it: they count as waiting only once no other has
/// come for a moment, unless others are admitted anyway. Belongs to the loop's thread.
class Knocks {
 public:
  static constexpr std::size_t kMaxWaiting = 64;
  /// How long guests wait for others to come, and how long at most.
  static constexpr Duration kGathering = Duration::milliseconds(500), kLongestGathering = Duration::seconds(3);

  struct Callbacks {
    /// Gets the number of those that wait, each time that it may have changed.
    std::function<void(std::size_t waiting)> on_waiting{};
    /// Gets the names of all guests at this door, each time that they may have changed.
    std::function<void(const std::vector<std::string>& names)> on_guests{};
  };

  /// The loop outlives it.
  Knocks(EventLoop& loop, const SessionOptions& session, Callbacks callbacks)
      : loop_(loop), session_(session), callbacks_(std::move(callbacks)), closing_(loop, session) {}

  /// From now on processes may wait here. Before, this process is not in a group itself, and sends them to the next door.
  void open() { open_ = true; }
  bool is_open() const { return open_; }
  /// The process is not in the group any more: those that wait, and those that come, go to the next door.
  void shut();
  /// Takes over an authenticated link.
  void receive(std::unique_ptr<Link> link);
  std::size_t waiting() const;
  /// So many guests have lost their group and will come again: those that wait are not admitted before them, if they come soon.
  void expect_guests(std::size_t count);
  struct Chosen {
    std::size_t processes = 0, guests = 0;
  };
  /// Chooses those that wait now, at most so many, for the tickets that come next, and returns their numbers. `on_gone` runs from the loop,
  /// with the process' name, when one of them has gone before let_go().
  Chosen choose(std::size_t most, std::function<void(const std::string& name)> on_gone);
  /// Gives those that were chosen their tickets: the first process has the rank of `first`, the second one the next, and so on; guests get
  /// theirs at the coordinator.
  void send_tickets(wire::Ticket first);
  /// Closes the connections of those that were chosen. Any that is not in the group then knocks again.
  void let_go();

 private:
  enum class State : std::uint8_t { silent, waiting, chosen };
  struct Peer {
    std::unique_ptr<UnidentifiedPeer> connection;
    State state = State::silent;
    std::string name{};  // for people
    bool is_guest = false;
    Instant since{};  // when it has knocked
  };
  using Peers = std::list<Peer>;

  void on_message(UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message);
  void receive_guest(Peers::iterator peer, const wire::SeatRequest& request);
  void let_wait(Peers::iterator peer, const std::string& name);
  std::size_t count_waiting() const;
  bool guests_have_gathered() const;
  bool may_be_chosen(const Peer& peer) const;
  void reject(Peers::iterator peer, const Status& reason);
  void send_on(Peers::iterator peer);
  void remove(Peers::iterator peer);
  template <class Close>
  void take(Peers::iterator peer, Close close);
  void tell_waiting();
  Peers::iterator find(const UnidentifiedPeer& connection);

  EventLoop& loop_;
  const SessionOptions session_;
  const Callbacks callbacks_;
  ClosingSessions closing_;
  bool open_ = false;
  Peers peers_;  // those that have knocked in the order of their knocks
  std::size_t expected_guests_ = 0;
  Instant expected_since_{};
  bool expected_are_here_ = false;
  std::function<void(const std::string& name)> on_gone_;
  AliveGuard guard_;
};

}  // namespace ringlet
