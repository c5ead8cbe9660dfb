#include "core/rendezvous/knocking.hpp"

#include <utility>

#include "core/engine/send_control.hpp"
#include "core/ports/release_later.hpp"
#include "core/rendezvous/endpoints.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxTicketBytes = 8192;
/// A rank that hangs answers at its door, too, so another one is asked after a while.
constexpr Duration kPatienceWithDoor = Duration::seconds(10);

/// Whether the ticket, which names a host, can be used.
bool is_consistent(const wire::Ticket& ticket) {
  return ticket.world_size <= wire::kMaxRanks && ticket.rank > 0 && ticket.rank < ticket.world_size &&
         ticket.guests <= ticket.world_size - ticket.rank && ticket.members <= ticket.rank && ticket.heartbeat_timeout_ms > 0 &&
         ticket.wait_ms > 0 && is_dialable({ticket.host, ticket.port});
}

}  // namespace

Knocking::Knocking(EventLoop& loop, Network& network, Authenticator& authenticator, KnockingOptions options, OnAnswer on_answer)
    : loop_(loop), options_(std::move(options)), on_answer_(std::move(on_answer)), dialler_(loop, network, authenticator) {
  deadline_timer_ = loop_.after(options_.timeout, [this] {
    deadline_timer_ = 0;
    on_deadline();
  });
  dial();
}

Knocking::~Knocking() {
  if (deadline_timer_ != 0) loop_.cancel(deadline_timer_);
  close_session();
}

void Knocking::dial() {
  dialler_.dial(door(), DialTimes{}, LinkRequest{},
                guard_.wrap([this](Result<std::unique_ptr<Link>> link) { on_dialled(std::move(link)); }));
}

void Knocking::on_dialled(Result<std::unique_ptr<Link>> link) {
  if (!on_answer_) return;
  if (!link.ok()) {
    const Status status = link.status();
    if (refusals_.add(status)) return finish(Status(status.code(), "cannot join at the door " + to_string(door()) + ": " + status.text()));
    // A refusal may come from a rank that was just ending, so the same door is asked again.
    if (refusals_.any()) {
      last_reason_ = status.text();
      loop_.after(retry_pause_.next(), guard_.wrap([this] { dial(); }));
      return;
    }
    return try_next(status.text());
  }
  refusals_.clear();
  session_ = std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), options_.session);
  last_reason_ = to_string(door()) + " answers, but the group has not admitted this process yet (admit())";
  send_control(*session_, wire::Knock{options_.name});
  if (options_.doors.size() < 2) return;
  patience_timer_ = loop_.after(kPatienceWithDoor, [this, reason = last_reason_] {
    patience_timer_ = 0;
    try_next(reason);
  });
}

PayloadSink* Knocking::on_frame(Session& session, const FrameHeader& header) {
  if (!on_answer_ || !session_) return nullptr;
  if (header.kind == FrameKind::control && header.payload_bytes <= kMaxTicketBytes) return session.gather_control();
  finish(Status(Errc::protocol_error, "the door " + to_string(door()) + " answered with something else than a ticket"));
  return nullptr;
}

void Knocking::on_control(Session&, ConstBytes payload) {
  if (!on_answer_) return;
  const auto message = wire::decode_control(payload);
  const auto* abort = message ? std::get_if<wire::Abort>(&*message) : nullptr;
  if (abort != nullptr) {
    const Status status = wire::to_status(*abort);
    if (status.code() == Errc::cancelled) return try_next(to_string(door()) + ": " + status.text());
    return finish(Status(status.code(), "the door " + to_string(door()) + " refuses this process: " + status.text()));
  }
  if (const auto* given = message ? std::get_if<wire::Ticket>(&*message) : nullptr) {
    wire::Ticket ticket = *given;
    if (ticket.host.empty()) ticket.host = door().host;
    if (is_consistent(ticket)) return finish(std::move(ticket));
  }
  finish(Status(Errc::protocol_error, "the door " + to_string(door()) + " answered with something else than a ticket"));
}

void Knocking::on_session_failed(Session&, const Status& status) { try_next(to_string(door()) + ": " + status.text()); }

void Knocking::on_session_ended(Session&) { try_next(to_string(door()) + " closed the connection"); }

void Knocking::on_deadline() {
  std::string doors;
  for (const Address& one : options_.doors) doors += (doors.empty() ? "" : ", ") + to_string(one);
  finish(Status(Errc::timed_out, "no group has admitted this process within " + std::to_string(options_.timeout.whole_milliseconds()) +
                                     " ms; it knocked at " + doors + (last_reason_.empty() ? "" : ": " + last_reason_)));
}

void Knocking::try_next(const std::string& reason) {
  if (!on_answer_) return;
  last_reason_ = reason;
  close_session();
  current_ = (current_ + 1) % options_.doors.size();
  loop_.after(retry_pause_.next(), guard_.wrap([this] {
    if (on_answer_) dial();
  }));
}

/// The session may be inside a call of its own.
void Knocking::close_session() {
  if (patience_timer_ != 0) loop_.cancel(std::exchange(patience_timer_, 0));
  if (!session_) return;
  session_->close();
  release_later(loop_, std::move(session_));
}

void Knocking::finish(Result<wire::Ticket> outcome) {
  if (!on_answer_) return;
  for (TimerId* timer : {&deadline_timer_, &patience_timer_})
    if (*timer != 0) loop_.cancel(std::exchange(*timer, 0));
  if (!outcome.ok()) close_session();
  const OnAnswer on_answer = std::exchange(on_answer_, nullptr);
  on_answer(std::move(outcome));
}

}  // namespace ringlet
