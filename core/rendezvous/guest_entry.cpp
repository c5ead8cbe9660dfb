#include "core/rendezvous/guest_entry.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/requests.hpp"
#include "core/engine/send_control.hpp"
#include "core/ports/release_later.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxAnswerBytes = 8192;

bool is_usable(const wire::Ticket& ticket) { return ticket.port > 0 && ticket.port <= 65'535; }

bool is_consistent(const wire::Seat& seat) {
  return seat.world_size <= wire::kMaxRanks && seat.guests < seat.world_size && seat.rank < seat.world_size &&
         seat.rank >= seat.world_size - seat.guests && seat.heartbeat_timeout_ms > 0 && seat.wait_ms > 0;
}

}  // namespace

WorldOptions GuestEntry::Entry::world_options(WorldOptions own) const {
  own.rank = static_cast<int>(seat.rank);
  own.size = static_cast<int>(seat.world_size);
  own.guests = static_cast<int>(seat.guests);
  own.heartbeat_timeout = Duration::milliseconds(seat.heartbeat_timeout_ms);
  return own;
}

GuestEntry::GuestEntry(EventLoop& loop, Network& network, Authenticator& authenticator, GuestEntryOptions options, OnSeat on_seat)
    : loop_(loop),
      options_(std::move(options)),
      on_seat_(std::move(on_seat)),
      dialler_(loop, network, authenticator),
      coordinator_(options_.coordinator) {
  set_deadline();
  dial();
}

void GuestEntry::set_deadline() {
  if (deadline_timer_ != 0) return;
  deadline_timer_ = loop_.after(options_.timeout, [this] {
    deadline_timer_ = 0;
    finish(Status(Errc::timed_out, "no seat at " + to_string(options_.coordinator) + " within " +
                                       std::to_string(options_.timeout.whole_milliseconds()) + " ms" +
                                       (last_error_.empty() ? "" : ": " + last_error_)));
  });
}

GuestEntry::~GuestEntry() {
  if (deadline_timer_ != 0) loop_.cancel(deadline_timer_);
  // It may be inside a call of its own.
  if (door_) door_->close();
  release_later(loop_, std::move(door_));
}

void GuestEntry::dial() {
  dialler_.dial(coordinator_, DialTimes{}, LinkRequest{}, [this, attempt = ++attempt_](Result<std::unique_ptr<Link>> link) {
    if (attempt == attempt_) on_dialled(std::move(link));
  });
}

void GuestEntry::on_dialled(Result<std::unique_ptr<Link>> link) {
  if (!on_seat_) return;
  if (!link.ok()) {
    const Status status = link.status();
    if (refusals_.add(status)) return finish(status);
    return retry(status.text());
  }
  refusals_.clear();
  session_ = std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), options_.session);
  send_control(*session_, wire::SeatRequest{options_.name});
}

PayloadSink* GuestEntry::on_frame(Session& session, const FrameHeader& header) {
  if (&session != session_.get()) return nullptr;
  if (header.kind == FrameKind::control && header.payload_bytes <= kMaxAnswerBytes) return session.gather_control();
  finish(Status(Errc::protocol_error, "rank 0 answered with something else than a seat", 0));
  return nullptr;
}

void GuestEntry::on_control(Session&, ConstBytes payload) {
  if (!on_seat_) return;
  const auto message = wire::decode_control(payload);
  if (message) {
    if (const auto* welcome = std::get_if<wire::Welcome>(&*message); welcome != nullptr && !door_) {
      if (deadline_timer_ != 0) loop_.cancel(std::exchange(deadline_timer_, 0));
      if (options_.on_waiting) options_.on_waiting();
      return;
    }
    if (const auto* ticket = std::get_if<wire::Ticket>(&*message); ticket != nullptr && !door_ && is_usable(*ticket))
      return use_ticket(*ticket);
    if (const auto* abort = std::get_if<wire::Abort>(&*message)) return finish(wire::to_status(*abort));
    if (const auto* seat = std::get_if<wire::Seat>(&*message); seat != nullptr && is_consistent(*seat))
      return finish(Entry{*seat, std::move(session_), coordinator_, door_ != nullptr, ticket_.epoch, ticket_.lineage});
  }
  finish(Status(Errc::protocol_error, "rank 0 answered with something else than a seat", 0));
}

void GuestEntry::use_ticket(const wire::Ticket& ticket) {
  ticket_ = ticket;
  door_ = std::move(session_);
  coordinator_ = {ticket.host.empty() ? options_.coordinator.host : ticket.host, static_cast<std::uint16_t>(ticket.port)};
  set_deadline();
  dial();
}

void GuestEntry::on_session_failed(Session&, const Status& status) { retry(status.text()); }

void GuestEntry::on_session_ended(Session&) { retry("rank 0 closed the connection"); }

void GuestEntry::close_sessions() {
  for (auto* session : {&session_, &door_})
    if (*session) {
      (*session)->close();
      release_later(loop_, std::move(*session));
    }
  ticket_ = {};
}

/// Where the coordinator or the door has gone, the guest begins at the door again.
void GuestEntry::retry(const std::string& reason) {
  if (!on_seat_) return;
  last_error_ = reason;
  ++attempt_;
  close_sessions();
  coordinator_ = options_.coordinator;
  set_deadline();
  loop_.after(retry_pause_.next(), guard_.wrap([this] {
    if (on_seat_) dial();
  }));
}

void GuestEntry::finish(Result<Entry> outcome) {
  if (!on_seat_) return;
  if (deadline_timer_ != 0) loop_.cancel(std::exchange(deadline_timer_, 0));
  if (!outcome.ok()) close_sessions();
  if (session_) session_->close();
  release_later(loop_, std::move(session_));
  EventLoop& loop = loop_;
  const OnSeat on_seat = std::exchange(on_seat_, nullptr);
  on_seat(outcome);
  if (!outcome.ok() || !outcome.value().session) return;
  outcome.value().session->close();
  release_later(loop, std::move(outcome.value().session));
}

void start_entry_barrier(World& world, Completion on_done) {
  CollectiveTask task = make_barrier(world.group().options());
  task.completion = std::move(on_done);
  world.group().start(GroupEngine::kOwnStream, std::move(task));
}

}  // namespace ringlet
