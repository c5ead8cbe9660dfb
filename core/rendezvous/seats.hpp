#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/options.hpp"
#include "core/engine/session.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Keeps the guests at rank 0 until the group is complete. Each gets the lowest free seat. A guest that leaves, or falls silent, frees its
/// seat. Belongs to the loop's thread.
class Seats final : private SessionOwner {
 public:
  /// Guests are told to wait for the others until `deadline`. `on_changed` runs when a guest has left.
  Seats(EventLoop& loop, const WorldOptions& options, Instant deadline, std::function<void()> on_changed);
  ~Seats();

  /// Gives a guest a seat. Returns false where none is free; the session then stays with the caller.
  bool sit(std::unique_ptr<Session>& session, const std::string& name);
  int taken() const;
  bool full() const { return taken() == options_.guests; }
  std::vector<std::string> names() const;
  /// Tells each guest its seat and how many ranks are there.
  void tell(int present);

  struct Guest {
    std::unique_ptr<Session> session;
    std::string name;  // with its address
  };
  /// Hands over all guests, by seat; a free seat has no session. No seat is given any more.
  std::vector<Guest> release();

 private:
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;
  void free_seat_of(Session& session);
  void schedule_tick();
  void tick();

  EventLoop& loop_;
  const WorldOptions& options_;
  const Instant deadline_;
  std::function<void()> on_changed_;
  std::vector<Guest> guests_;  // by seat
  TimerId timer_ = 0;
};

/// A guest's name in a form that a status can show: of bounded length, with the address.
std::string name_for_people(const std::string& name, const std::string& peer_name);

}  // namespace ringlet
