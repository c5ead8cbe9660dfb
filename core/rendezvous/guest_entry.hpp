#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/alive_guard.hpp"
#include "core/engine/options.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/retry_pause.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct GuestEntryOptions {
  Address coordinator;                       // rank 0
  std::string name;                          // for people: "Chromium on Linux"
  Duration timeout = Duration::seconds(60);  // until it has a seat
  SessionOptions session{};
  /// Called when a group that runs lets the guest wait at its door, which has no deadline.
  std::function<void()> on_waiting{};
};

/// Gets a guest into a world: dials rank 0 and asks for a seat. The caller then makes a World of the seat's rank and size, which adopts the
/// session as the one with rank 0, and a Meeting, which waits for the others.
///
/// Where an elastic group runs, its door answers instead (knocks.hpp), and the guest waits there for a ticket to the coordinator of the
/// next world, which gives it the seat. The connection with the door then stays open as long as this object lives, which tells the group
/// that the guest does; the first operation in that world is a barrier (start_entry_barrier). Belongs to the loop's thread.
class GuestEntry final : private SessionOwner {
 public:
  struct Entry {
    wire::Seat seat;
    std::unique_ptr<Session> session;
    Address coordinator;   // at which rank 0 was reached
    bool elastic = false;  // whether the group runs, and lets guests come and go
    // Of an elastic group's world.
    std::uint32_t epoch = 0;
    std::uint64_t lineage = 0;

    /// Returns `own` with the seat's rank, size, number of guests and heartbeat timeout.
    WorldOptions world_options(WorldOptions own) const;
    /// How long rank 0 waits for the others.
    Duration wait() const { return Duration::milliseconds(seat.wait_ms); }
  };
  /// Runs once, from the loop. It takes the session over, or leaves it to be closed. It may not destroy the session, which is inside a call
  /// of its own, but it may destroy the GuestEntry where the group is not elastic. A failure is rank 0's reason for having no seat, a
  /// status of DialHandshake, or `timed_out` with the last reason.
  using OnSeat = std::function<void(Result<Entry>&)>;

  /// All arguments outlive it.
  GuestEntry(EventLoop& loop, Network& network, Authenticator& authenticator, GuestEntryOptions options, OnSeat on_seat);
  ~GuestEntry();
  GuestEntry(const GuestEntry&) = delete;
  GuestEntry& operator=(const GuestEntry&) = delete;

 private:
  void set_deadline();
  void dial();
  void on_dialled(Result<std::unique_ptr<Link>> link);
  void use_ticket(const wire::Ticket& ticket);
  void close_sessions();
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_control(Session& session, ConstBytes payload) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;
  void retry(const std::string& reason);
  void finish(Result<Entry> outcome);

  EventLoop& loop_;
  const GuestEntryOptions options_;
  OnSeat on_seat_;
  Dialler dialler_;
  Address coordinator_;
  int attempt_ = 0;  // of dialling; the results of earlier ones do not matter
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> door_;  // at which it has waited, and which has given it a ticket
  wire::Ticket ticket_;            // the last one
  std::string last_error_;
  RefusalsInRow refusals_;
  RetryPause retry_pause_{Duration::milliseconds(50)};
  TimerId deadline_timer_ = 0;
  AliveGuard guard_;
};

/// The first operation of a guest in a world of an elastic group. Once it has succeeded, the guest is in.
void start_entry_barrier(World& world, Completion on_done);

}  // namespace ringlet
