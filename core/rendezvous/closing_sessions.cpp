#include "core/rendezvous/closing_sessions.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/send_control.hpp"
#include "core/ports/release_later.hpp"

namespace ringlet {

namespace {

constexpr Duration kClosingTime = Duration::seconds(1);

}  // namespace

void ClosingSessions::take_over(Session& session) {
  session.set_owner(*this);
  session.discard_received();
}

void ClosingSessions::close(std::unique_ptr<Session> session) {
  take_over(*session);
  session->finish_sending();
  closing_.push_back(std::move(session));
  loop_.after(kClosingTime, guard_.wrap([this] { closing_.pop_front(); }));
}

void ClosingSessions::reject(std::unique_ptr<Session> session, const Status& reason) {
  send_control(*session, wire::to_abort(reason));
  close(std::move(session));
}

void ClosingSessions::reject(std::unique_ptr<Link> link, const Status& reason) {
  reject(std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), options_), reason);
}

void ClosingSessions::close_after_peer(std::unique_ptr<Session> session) {
  take_over(*session);
  awaiting_peer_.push_back(std::move(session));
}

void ClosingSessions::on_session_ended(Session& session) {
  const auto found =
      std::find_if(awaiting_peer_.begin(), awaiting_peer_.end(), [&](const auto& awaiting) { return awaiting.get() == &session; });
  if (found == awaiting_peer_.end()) return;
  session.close();
  release_later(loop_, std::move(*found));
  awaiting_peer_.erase(found);
}

}  // namespace ringlet
