#include "core/rendezvous/link_candidate.hpp"

#include <algorithm>
#include <utility>

#include "core/base/rank_text.hpp"
#include "core/engine/send_control.hpp"
#include "core/ports/release_later.hpp"
#include "core/rendezvous/link_measurement.hpp"
#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

LinkCandidate::LinkCandidate(EventLoop& loop, Dialler& dialler, const LinkCandidateOptions& options, wire::Endpoint target,
                             const Callbacks& callbacks)
    : loop_(loop), dialler_(dialler), options_(options), target_(std::move(target)), callbacks_(callbacks) {}

LinkCandidate::~LinkCandidate() {
  if (timer_ != 0) loop_.cancel(timer_);
}

std::string LinkCandidate::text() const { return to_string(Address{target_.host, static_cast<std::uint16_t>(target_.port)}); }

bool LinkCandidate::is_local() const {
  const auto peer = parse_address(session_->peer_name());
  return peer.ok() && is_loopback(peer.value());
}

// --- dialling ---

void LinkCandidate::dial_after(Duration pause) {
  state_ = State::idle;
  timer_ = loop_.after(pause, [this] {
    timer_ = 0;
    dial();
  });
}

void LinkCandidate::dial() {
  state_ = State::dialling;
  dialled_at_ = loop_.now();
  const Address address{target_.host, static_cast<std::uint16_t>(target_.port)};
  dialler_.dial(address, DialTimes{}, options_.request,
                guard_.wrap([this](Result<std::unique_ptr<Link>> link) { on_dialled(std::move(link)); }));
}

void LinkCandidate::pause() {
  paused_ = true;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  if (state_ != State::idle && state_ != State::proposed) return;
  drop();
}

void LinkCandidate::resume() {
  paused_ = false;
  if (state_ == State::lost) dial_after(retry_pause_.next());
}

void LinkCandidate::on_dialled(Result<std::unique_ptr<Link>> link) {
  if (paused_) {
    state_ = State::lost;
    return;
  }
  if (!link.ok()) return lose(link.status(), link.status().code() == Errc::protocol_error);
  const auto own_address = parse_address(link.value()->own_name());
  const std::string own_host = own_address.ok() ? own_address.value().host : std::string();
  const auto own = std::find_if(options_.interfaces.begin(), options_.interfaces.end(),
                                [&](const wire::Endpoint& interface) { return interface.host == own_host; });
  const bool known = own != options_.interfaces.end();
  if (!known && options_.only_these_interfaces)
    return lose({Errc::peer_lost, "the way to " + text() + " leaves by " + own_host + ", which is not to be used"}, true);
  path_ = path_between(known ? *own : wire::Endpoint{}, target_);
  session_ = std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), options_.session);
  state_ = State::proposed;
  send(options_.proposal);
}

// --- the conversation ---

void LinkCandidate::send(const wire::ControlMessage& message) { send_control(*session_, message); }

void LinkCandidate::nominate() {
  state_ = State::nominated;
  send(wire::Nominate{path_});
}

PayloadSink* LinkCandidate::on_frame(Session& session, const FrameHeader& header) {
  if (header.kind == FrameKind::control && header.payload_bytes <= LinkMeasurement::kMaxMessageBytes) return session.gather_control();
  lose({Errc::protocol_error, text() + " sent a frame that does not belong here"}, true);
  return nullptr;
}

void LinkCandidate::on_control(Session&, ConstBytes payload) {
  if (const auto message = wire::decode_control(payload)) return on_message(*message);
  lose({Errc::protocol_error, text() + " sent a message that cannot be read"}, true);
}

void LinkCandidate::on_session_failed(Session&, const Status& status) { lose(status, false); }

void LinkCandidate::on_session_ended(Session&) { lose({Errc::peer_lost, text() + " closed the connection"}, false); }

void LinkCandidate::on_message(const wire::ControlMessage& message) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) return on_welcome(*welcome);
  if (const auto* probe = std::get_if<wire::LinkProbe>(&message); probe != nullptr && probe->answer)
    return callbacks_.on_probe_answer(*this, *probe);
  if (const auto* abort = std::get_if<wire::Abort>(&message)) return lose(wire::to_status(*abort), false);
  lose({Errc::protocol_error, text() + " sent a message that does not belong here"}, true);
}

void LinkCandidate::on_welcome(const wire::Welcome& welcome) {
  const std::uint32_t peer = options_.proposal.to;
  if (welcome.rank != peer)
    return lose({Errc::mismatch, "at " + text() + " answers " + rank_text(welcome.rank) + " and not " + rank_text(peer)}, true);
  if (state_ == State::nominated) {
    send(wire::Welcome{options_.proposal.settings.rank});
    return callbacks_.on_accepted(*this);
  }
  if (state_ == State::proposed) {
    state_ = State::ready;
    return callbacks_.on_ready(*this);
  }
  lose({Errc::protocol_error, text() + " accepted something that it had not been asked for"}, true);
}

// --- the end ---

void LinkCandidate::lose(const Status& status, bool for_good) {
  drop();
  if (finished_) return;
  const bool refused = status.code() == Errc::mismatch || status.code() == Errc::invalid_argument;
  if (refused) ++refusals_;
  if (for_good || refusals_ >= kMaxRefusals) state_ = State::hopeless;
  callbacks_.on_lost(*this, status);
}

void LinkCandidate::drop() {
  state_ = State::lost;
  if (!session_) return;
  session_->close();
  release_later(loop_, std::move(session_));
}

std::unique_ptr<Session> LinkCandidate::take() {
  state_ = State::lost;
  return std::move(session_);
}

void LinkCandidate::finish() {
  finished_ = true;
  guard_.end();
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  if (!session_) return;
  session_->discard_received();
  session_->finish_sending();
}

}  // namespace ringlet
