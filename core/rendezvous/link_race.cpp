#include "core/rendezvous/link_race.hpp"

#include <algorithm>
#include <utility>

#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

constexpr Duration kHeadStart = Duration::milliseconds(2);
constexpr Duration kFirstPause = Duration::milliseconds(20), kMostPause = Duration::seconds(1);
constexpr Duration kLeastWait = Duration::milliseconds(100), kMostWait = Duration::milliseconds(400);
constexpr Duration kPingTime = Duration::milliseconds(150);
constexpr Duration kLeastRowTime = Duration::milliseconds(30), kMostRowTime = Duration::milliseconds(250);
constexpr Duration kAnswerTime = Duration::seconds(5);
constexpr std::size_t kMostMessageBytes = LinkRace::kPadding + 1024;
constexpr int kMostRefusals = 3;

std::string host_of(const std::string& name) {
  const auto address = parse_address(name);
  return address.ok() ? address.value().host : std::string();
}

std::string rank_text(std::uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

struct LinkRace::Candidate {
  enum class State : std::uint8_t { idle, dialling, greeting, ready, lost, never };
  wire::Offer target;
  State state = State::idle;
  std::unique_ptr<Session> session{};
  std::shared_ptr<Sink> sink{};
  wire::Path path{};
  Duration pause = kFirstPause;
  int refusals = 0;
  TimerId timer = 0;
  Instant dialled{}, sent{};
  std::uint32_t asked = 0, answered = 0;  // probes
  std::uint32_t row_answered = 0;
};

class LinkRace::Sink final : public GatheringSink {
 public:
  Sink(LinkRace& race, Candidate& candidate) : race_(race), candidate_(candidate) {}
  void frame_ended() override {
    if (const auto message = wire::decode_control(gathered())) return race_.on_message(candidate_, *message);
    race_.lose(candidate_, {Errc::protocol_error, to_text(candidate_) + " sent what is no message"}, true);
  }

  static std::string to_text(const Candidate& candidate) {
    return to_string(Address{candidate.target.host, static_cast<std::uint16_t>(candidate.target.port)});
  }

 private:
  LinkRace& race_;
  Candidate& candidate_;
};

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

// --- dialling ---

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
  const std::string own_host = host_of(link.value()->own_name());
  const auto own = std::find_if(options_.interfaces.begin(), options_.interfaces.end(),
                                [&](const wire::Offer& interface) { return interface.host == own_host; });
  if (own == options_.interfaces.end() && options_.only_these_interfaces)
    return lose(candidate,
                {Errc::peer_lost, "the way to " + Sink::to_text(candidate) + " leaves by " + own_host + ", which is not to be used"}, true);
  candidate.path = path_between(own == options_.interfaces.end() ? wire::Offer{} : *own, candidate.target);
  candidate.sink = std::make_shared<Sink>(*this, candidate);
  candidate.state = Candidate::State::greeting;
  candidate.asked = candidate.answered = candidate.row_answered = 0;
  candidate.session = std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), options_.session);
  wire::Hello hello = options_.hello;
  hello.purpose = wire::Hello::Purpose::candidate;
  send(candidate, hello);
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
  if (const auto* probe = std::get_if<wire::Probe>(&message); probe != nullptr && probe->answer) return on_probe(candidate, *probe);
  if (const auto* abort = std::get_if<wire::Abort>(&message)) return lose(candidate, wire::to_status(*abort), false);
  lose(candidate, {Errc::protocol_error, Sink::to_text(candidate) + " sent what does not belong here"}, true);
}

void LinkRace::on_welcome(Candidate& candidate, std::uint32_t rank) {
  if (rank != options_.hello.to)
    return lose(
        candidate,
        {Errc::mismatch, "at " + Sink::to_text(candidate) + " answers " + rank_text(rank) + " and not " + rank_text(options_.hello.to)},
        true);
  if (stage_ == Stage::asking && &candidate == current_) {
    send(candidate, wire::Welcome{options_.hello.rank});
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
  if (refused && !for_good) for_good = ++candidate.refusals >= kMostRefusals;
  candidate.state = for_good ? Candidate::State::never : Candidate::State::lost;
  if (given_up()) return end(Status(status.code() == Errc::protocol_error ? Errc::protocol_error : Errc::mismatch, status.text()));
  switch (stage_) {
    case Stage::gathering:
      if (!ready().empty()) {
        if (timer_ != 0 &&
            std::none_of(candidates_.begin(), candidates_.end(), [](const auto& one) { return one->state < Candidate::State::ready; }))
          stop_gathering();
      } else if (!for_good) {
        dial_later(candidate, std::exchange(candidate.pause, std::min(candidate.pause * 2, kMostPause)));
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

// --- choosing ---

std::vector<LinkRace::Candidate*> LinkRace::ready() const {
  std::vector<Candidate*> found;
  for (const auto& candidate : candidates_)
    if (candidate->state == Candidate::State::ready) found.push_back(candidate.get());
  return found;
}

void LinkRace::set_timer(Duration delay, void (LinkRace::*member)()) {
  if (timer_ != 0) loop_.cancel(timer_);
  timer_ = loop_.after(delay, [this, member] {
    timer_ = 0;
    (this->*member)();
  });
}

void LinkRace::become_ready(Candidate& candidate) {
  const bool first = ready().empty();
  candidate.state = Candidate::State::ready;
  const auto peer = parse_address(candidate.session->peer_name());
  const bool pending =
      std::any_of(candidates_.begin(), candidates_.end(), [](const auto& one) { return one->state < Candidate::State::ready; });
  // Nothing is faster than not to leave the machine.
  if (!pending || (peer.ok() && is_loopback(peer.value()))) return stop_gathering();
  if (first) set_timer(std::clamp((loop_.now() - candidate.dialled) * 8, kLeastWait, kMostWait), &LinkRace::stop_gathering);
}

void LinkRace::stop_gathering() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  if (ready().empty()) return start_again();
  for (const auto& candidate : candidates_) {
    if (candidate->timer != 0) loop_.cancel(std::exchange(candidate->timer, 0));
    if (candidate->state == Candidate::State::greeting) close(*candidate);
    if (candidate->state < Candidate::State::ready && candidate->state != Candidate::State::dialling)
      candidate->state = Candidate::State::lost;
  }
  // Two addresses of the same two interfaces are one way.
  std::vector<Candidate*> kept;
  for (Candidate* candidate : ready()) {
    const wire::Path& path = candidate->path;
    const bool known = !path.dialler_interface.empty() && !path.acceptor_interface.empty();
    const bool same =
        known && std::any_of(kept.begin(), kept.end(), [&](const Candidate* other) {
          return other->path.dialler_interface == path.dialler_interface && other->path.acceptor_interface == path.acceptor_interface;
        });
    if (!same) {
      kept.push_back(candidate);
      continue;
    }
    close(*candidate);
    candidate->state = Candidate::State::lost;
  }
  if (kept.size() == 1) return ask_best();
  begin_pinging();
}

void LinkRace::begin_pinging() {
  stage_ = Stage::pinging;
  set_timer(kPingTime, &LinkRace::stop_pinging);
  for (Candidate* candidate : ready()) ping(*candidate);
}

void LinkRace::ping(Candidate& candidate) {
  candidate.sent = loop_.now();
  send(candidate, wire::Probe{candidate.asked++, false, {}});
}

void LinkRace::on_probe(Candidate& candidate, const wire::Probe& answer) {
  if (candidate.answered == candidate.asked || answer.number != candidate.answered)
    return lose(candidate, {Errc::protocol_error, Sink::to_text(candidate) + " answered a probe that was not sent"}, true);
  ++candidate.answered;
  const auto took = static_cast<std::uint64_t>(std::max<std::int64_t>((loop_.now() - candidate.sent).nanoseconds, 1));
  if (candidate.answered <= kPings) {
    std::uint64_t& round_trip = candidate.path.round_trip_ns;
    round_trip = round_trip == 0 ? took : std::min(round_trip, took);
    if (stage_ != Stage::pinging) return;
    return candidate.asked < kPings ? ping(candidate) : end_pinging();
  }
  if (++candidate.row_answered == kRowLength && stage_ == Stage::measuring && &candidate == current_) end_row();
}

/// Once all have answered, or those that have not are lost.
void LinkRace::end_pinging() {
  for (const Candidate* candidate : ready())
    if (candidate->answered < kPings) return;
  stop_pinging();
}

void LinkRace::stop_pinging() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  stage_ = Stage::measuring;
  for (Candidate* candidate : ready()) {
    if (candidate->answered > 0) continue;
    close(*candidate);
    candidate->state = Candidate::State::lost;
  }
  measure_next();
}

void LinkRace::measure_next() {
  const auto found = ready();
  const auto next = std::find_if(found.begin(), found.end(), [](const Candidate* one) { return one->path.byte_ps == 0; });
  if (found.size() < 2 || next == found.end()) return ask_best();
  current_ = *next;
  Duration limit = kMostRowTime;
  for (const Candidate* other : found)
    if (other->path.byte_ps > 0)
      limit =
          std::min(limit, std::max(kLeastRowTime, Duration{static_cast<std::int64_t>(other->path.byte_ps * kRowLength * kPadding / 250)}));
  current_->sent = loop_.now();
  const std::string padding(kPadding, '\0');
  for (std::size_t i = 0; i < kRowLength; ++i) send(*current_, wire::Probe{current_->asked++, false, padding});
  set_timer(limit, &LinkRace::end_row);
}

/// The row has come back, or its time is over: then what has come by then counts, or half a probe.
void LinkRace::end_row() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  const auto took = static_cast<std::uint64_t>((loop_.now() - current_->sent).nanoseconds);
  const std::uint64_t alone = took - std::min(took / 2, current_->path.round_trip_ns);
  const std::uint64_t bytes = std::max<std::uint64_t>(current_->row_answered * kPadding, kPadding / 2);
  current_->path.byte_ps = std::max<std::uint64_t>(alone * 1000 / bytes, 1);
  measure_next();
}

void LinkRace::ask_best() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  stage_ = Stage::asking;
  const auto found = ready();
  if (found.empty()) return start_again();
  std::vector<wire::Path> paths;
  for (const Candidate* candidate : found) paths.push_back(candidate->path);
  current_ = found[choose_path(paths)];
  current_->path.tried = static_cast<std::uint32_t>(candidates_.size());
  wire::Hello hello = options_.hello;
  hello.path = current_->path;
  send(*current_, hello);
  set_timer(kAnswerTime, &LinkRace::give_current_up);
}

void LinkRace::give_current_up() { lose(*current_, {Errc::timed_out, Sink::to_text(*current_) + " has not answered in time"}, false); }

void LinkRace::start_again() {
  stage_ = Stage::gathering;
  current_ = nullptr;
  for (const auto& candidate : candidates_)
    if (candidate->state == Candidate::State::lost)
      dial_later(*candidate, std::exchange(candidate->pause, std::min(candidate->pause * 2, kMostPause)));
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
