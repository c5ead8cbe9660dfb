#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/engine/options.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct GuestEntryOptions {
  Address coordinator;                       // rank 0
  std::string name;                          // for people: "Chromium on Linux"
  Duration timeout = Duration::seconds(60);  // until it has a seat
  SessionOptions session{};
};

/// How a guest gets into a world: it dials rank 0 and asks for a seat. What it gets makes a World of that rank and size, which adopts the
/// session as that with rank 0, and a Meeting, which waits for the others. Belongs to the loop's thread.
class GuestEntry final : private SessionOwner {
 public:
  struct Entry {
    wire::Seat seat;
    std::unique_ptr<Session> session;

    /// `own` with what the seat says: rank, size, guests and the world's heartbeat timeout.
    WorldOptions world_options(WorldOptions own) const;
    /// How long rank 0 waits for the others.
    Duration wait() const { return Duration::milliseconds(seat.wait_ms); }
  };
  /// Runs once, from the loop, and takes the session or leaves it, which closes it; it must not destroy it, for the session is in a call of
  /// its own. The GuestEntry may be destroyed inside it. A failure is rank 0's reason for having no seat, a status of DialHandshake, or
  /// `timed_out` with the last reason.
  using OnSeat = std::function<void(Result<Entry>&)>;

  /// All outlive it.
  GuestEntry(EventLoop& loop, Network& network, Authenticator& authenticator, GuestEntryOptions options, OnSeat on_seat);
  ~GuestEntry();
  GuestEntry(const GuestEntry&) = delete;
  GuestEntry& operator=(const GuestEntry&) = delete;

 private:
  class Sink;

  void dial();
  void on_dialled(Result<std::unique_ptr<Link>> link);
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;
  void on_message(ConstBytes payload);
  void retry(const std::string& reason);
  void finish(Result<Entry> outcome);

  EventLoop& loop_;
  const GuestEntryOptions options_;
  OnSeat on_seat_;
  Dialler dialler_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<Sink> sink_;
  std::string last_error_;
  Duration pause_ = Duration::milliseconds(50);
  TimerId deadline_timer_ = 0;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet
