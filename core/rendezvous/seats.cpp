#include "core/rendezvous/seats.hpp"

#include <algorithm>
#include <utility>

#include "core/base/printable.hpp"
#include "core/engine/send_control.hpp"
#include "core/ports/release_later.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxShownNameBytes = 80;

}  // namespace

std::string name_for_people(const std::string& name, const std::string& peer_name) {
  return name.empty() ? peer_name : std::string(cut_text(name, kMaxShownNameBytes)) + ", " + peer_name;
}

Seats::Seats(EventLoop& loop, const WorldOptions& options, Instant deadline, std::function<void()> on_changed)
    : loop_(loop),
      options_(options),
      deadline_(deadline),
      on_changed_(std::move(on_changed)),
      guests_(static_cast<std::size_t>(options.guests)) {
  schedule_tick();
}

Seats::~Seats() { loop_.cancel(timer_); }

bool Seats::sit(std::unique_ptr<Session>& session, const std::string& name) {
  const auto seat = std::find_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.session == nullptr; });
  if (seat == guests_.end()) return false;
  session->set_owner(*this);
  seat->name = name_for_people(name, session->peer_name());
  seat->session = std::move(session);
  return true;
}

int Seats::taken() const {
  return static_cast<int>(std::count_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.session != nullptr; }));
}

std::vector<std::string> Seats::names() const {
  std::vector<std::string> result;
  for (const Guest& guest : guests_)
    if (guest.session) result.push_back(guest.name);
  return result;
}

void Seats::tell(int present) {
  wire::Seat seat;
  seat.world_size = static_cast<std::uint32_t>(options_.size);
  seat.guests = static_cast<std::uint32_t>(options_.guests);
  seat.present = static_cast<std::uint32_t>(present);
  seat.heartbeat_timeout_ms = static_cast<std::uint32_t>(options_.heartbeat_timeout.whole_milliseconds());
  const auto wait = std::max((deadline_ - loop_.now()).whole_milliseconds(), std::int64_t{1});
  seat.wait_ms = static_cast<std::uint32_t>(std::min<std::int64_t>(wait, UINT32_MAX));
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    if (!guests_[i].session) continue;
    seat.rank = static_cast<std::uint32_t>(options_.natives()) + static_cast<std::uint32_t>(i);
    send_control(*guests_[i].session, seat);
  }
}

std::vector<Seats::Guest> Seats::release() { return std::exchange(guests_, {}); }

/// A waiting guest may send only heartbeats, which the session does not pass on, so any frame breaks the protocol.
PayloadSink* Seats::on_frame(Session& session, const FrameHeader&) {
  free_seat_of(session);
  return nullptr;
}

void Seats::on_session_failed(Session& session, const Status&) { free_seat_of(session); }

void Seats::on_session_ended(Session& session) { free_seat_of(session); }

void Seats::free_seat_of(Session& session) {
  const auto seat = std::find_if(guests_.begin(), guests_.end(), [&](const Guest& guest) { return guest.session.get() == &session; });
  if (seat == guests_.end()) return;
  seat->session->close();
  release_later(loop_, std::move(seat->session));
  on_changed_();
}

void Seats::schedule_tick() {
  timer_ = loop_.after(options_.heartbeat_timeout / kHeartbeatsPerTimeout, [this] { tick(); });
}

void Seats::tick() {
  FrameHeader heartbeat;
  heartbeat.kind = FrameKind::heartbeat;
  std::vector<Session*> silent;
  for (const Guest& guest : guests_) {
    if (!guest.session) continue;
    guest.session->send_owned(heartbeat, {});
    if (loop_.now() - guest.session->last_received() >= options_.heartbeat_timeout) silent.push_back(guest.session.get());
  }
  schedule_tick();
  for (Session* session : silent) free_seat_of(*session);
}

}  // namespace ringlet
