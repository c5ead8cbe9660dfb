#include <algorithm>
#include <utility>

#include "core/base/rank_text.hpp"
#include "core/rendezvous/link_candidate.hpp"
#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

constexpr Duration kHeadStart = Duration::milliseconds(2);
constexpr std::size_t kMostMessageBytes = LinkRace::kPadding + 1024;
constexpr int kMaxRaceRefusals = 3;

std::string host_or_nothing(const std::string& name) {
  const auto address = parse_address(name);
  return address.ok() ? address.value().host : std::string();
}

}  // namespace

LinkRace::LinkRace(EventLoop& loop, Dialler& dialler, LinkRaceOptions options, OnEnd on_end)
    : loop_(loop), dialler_(dialler), options_(std::move(options)), on_end_(std::move(on_end)), alive_(std::make_shared<bool>(true)) {
  Duration head_start{};
  for (const auto& target : options_.targets) {
    candidates_.push_back(std::make_unique<Candidate>(Candidate{target}));
    dial_later(*candidates_.back(), head_start);
    head_start = head_start + kHeadStart;
  }
}

LinkRace::~LinkRace() {
  *alive_ = false;
  if (timer_ != 0) loop_.cancel(timer_);
  for (const auto& candidate : candidates_)
    if (candidate->timer != 0) loop_.cancel(candidate->timer);
}

void LinkRace::dial_later(Candidate& candidate, Duration pause) {
  candidate.state = Candidate::State::idle;
  candidate.timer = loop_.after(pause, [this, &candidate] {
    candidate.timer = 0;
    dial(candidate);
  });
}

void LinkRace::dial(Candidate& candidate) {
  candidate.state = Candidate::State::dialling;
  candidate.dialled = loop_.now();
  const Address address{candidate.target.host, static_cast<std::uint16_t>(candidate.target.port)};
  dialler_.dial(address, DialTimes{}, options_.request, [this, alive = alive_, &candidate](Result<std::unique_ptr<Link>> link) {
    if (*alive) on_dialled(candidate, std::move(link));
  });
}

void LinkRace::on_dialled(Candidate& candidate, Result<std::unique_ptr<Link>> link) {
  if (stage_ != Stage::gathering) {
    candidate.state = Candidate::State::lost;
    return;
  }
  if (!link.ok()) return lose(candidate, link.status(), link.status().code() == Errc::protocol_error);
  const std::string own_host = host_or_nothing(link.value()->own_name());
  const auto own = std::find_if(options_.interfaces.begin(), options_.interfaces.end(),
                                [&](const wire::Endpoint& interface) { return interface.host == own_host; });
  if (own == options_.interfaces.end() && options_.only_these_interfaces)
    return lose(candidate,
                {Errc::peer_lost, "the way to " + Sink::to_text(candidate) + " leaves by " + own_host + ", which is not to be used"}, true);
  candidate.path = path_between(own == options_.interfaces.end() ? wire::Endpoint{} : *own, candidate.target);
  candidate.sink = std::make_shared<Sink>(*this, candidate);
  candidate.state = Candidate::State::greeting;
  candidate.asked = candidate.answered = candidate.row_answered = 0;
  candidate.session = std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), options_.session);
  send(candidate, options_.proposal);
}

void LinkRace::send(Candidate& candidate, const wire::ControlMessage& message) {
  const std::string payload = wire::encode_control(message);
  FrameHeader header;
  header.kind = FrameKind::control;
  candidate.session->send_owned(header, std::as_bytes(std::span(payload)));
}

LinkRace::Candidate& LinkRace::candidate_of(const Session& session) {
  return **std::find_if(candidates_.begin(), candidates_.end(), [&](const auto& one) { return one->session.get() == &session; });
}

PayloadSink* LinkRace::on_frame(Session& session, const FrameHeader& header) {
  Candidate& candidate = candidate_of(session);
  if (header.kind == FrameKind::control && header.payload_bytes <= kMostMessageBytes) {
    candidate.sink->begin();
    return candidate.sink.get();
  }
  lose(candidate, {Errc::protocol_error, Sink::to_text(candidate) + " sent what does not belong here"}, true);
  return nullptr;
}

void LinkRace::on_session_failed(Session& session, const Status& status) { lose(candidate_of(session), status, false); }

void LinkRace::on_session_ended(Session& session) {
  Candidate& candidate = candidate_of(session);
  lose(candidate, {Errc::peer_lost, Sink::to_text(candidate) + " closed the connection"}, false);
}

void LinkRace::on_message(Candidate& candidate, const wire::ControlMessage& message) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) return on_welcome(candidate, welcome->rank);
  if (const auto* probe = std::get_if<wire::LinkProbe>(&message); probe != nullptr && probe->answer) return on_probe(candidate, *probe);
  if (const auto* abort = std::get_if<wire::Abort>(&message)) return lose(candidate, wire::to_status(*abort), false);
  lose(candidate, {Errc::protocol_error, Sink::to_text(candidate) + " sent what does not belong here"}, true);
}

void LinkRace::on_welcome(Candidate& candidate, std::uint32_t rank) {
  if (rank != options_.proposal.to)
    return lose(
        candidate,
        {Errc::mismatch, "at " + Sink::to_text(candidate) + " answers " + rank_text(rank) + " and not " + rank_text(options_.proposal.to)},
        true);
  if (stage_ == Stage::asking && &candidate == current_) {
    send(candidate, wire::Welcome{options_.proposal.settings.rank});
    candidate.state = Candidate::State::lost;
    return end(Winner{std::move(candidate.session), candidate.path});
  }
  if (candidate.state == Candidate::State::greeting && stage_ == Stage::gathering) return become_ready(candidate);
  lose(candidate, {Errc::protocol_error, Sink::to_text(candidate) + " sent a welcome that nobody had asked for"}, true);
}

/// It is safe inside the session's own call.
void LinkRace::close(Candidate& candidate) {
  if (!candidate.session) return;
  candidate.session->close();
  loop_.defer([gone = std::shared_ptr<Session>(std::move(candidate.session)), sink = std::move(candidate.sink)] {});
}

void LinkRace::lose(Candidate& candidate, const Status& status, bool for_good) {
  close(candidate);
  if (stage_ == Stage::over) return;
  last_error_ = status.text();
  const bool refused = status.code() == Errc::mismatch || status.code() == Errc::invalid_argument;
  if (refused && !for_good) for_good = ++candidate.refusals >= kMaxRaceRefusals;
  candidate.state = for_good ? Candidate::State::never : Candidate::State::lost;
  if (given_up()) return end(Status(status.code() == Errc::protocol_error ? Errc::protocol_error : Errc::mismatch, status.text()));
  switch (stage_) {
    case Stage::gathering:
      if (!ready().empty()) {
        if (timer_ != 0 &&
            std::none_of(candidates_.begin(), candidates_.end(), [](const auto& one) { return one->state < Candidate::State::ready; }))
          stop_gathering();
      } else if (!for_good) {
        dial_later(candidate, candidate.next_pause());
      }
      return;
    case Stage::pinging:
      return end_pinging();
    case Stage::measuring:
    case Stage::asking:
      if (&candidate != current_) return;
      current_ = nullptr;
      return stage_ == Stage::asking ? ask_best() : measure_next();
    case Stage::over:
      return;
  }
}

bool LinkRace::given_up() const {
  return std::all_of(candidates_.begin(), candidates_.end(), [](const auto& one) { return one->state == Candidate::State::never; });
}

void LinkRace::end(Result<Winner> outcome) {
  stage_ = Stage::over;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  for (const auto& candidate : candidates_) {
    if (candidate->timer != 0) loop_.cancel(std::exchange(candidate->timer, 0));
    if (!candidate->session) continue;
    candidate->session->discard_received();
    candidate->session->finish_sending();
  }
  const OnEnd on_end = std::exchange(on_end_, nullptr);
  on_end(std::move(outcome));
}

}  // namespace ringlet
