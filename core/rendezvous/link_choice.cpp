// How the race finds out which candidate is the fastest.

#include <algorithm>
#include <utility>

#include "core/rendezvous/link_candidate.hpp"
#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

constexpr Duration kLeastWait = Duration::milliseconds(100), kMostWait = Duration::milliseconds(400);
constexpr Duration kPingTime = Duration::milliseconds(150);
constexpr Duration kLeastRowTime = Duration::milliseconds(30), kMostRowTime = Duration::milliseconds(250);
constexpr Duration kAnswerTime = Duration::seconds(5);

}  // namespace

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
  send(candidate, wire::LinkProbe{candidate.asked++, false, {}});
}

void LinkRace::on_probe(Candidate& candidate, const wire::LinkProbe& answer) {
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
  for (std::size_t i = 0; i < kRowLength; ++i) send(*current_, wire::LinkProbe{current_->asked++, false, padding});
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
  send(*current_, wire::Nominate{current_->path});
  set_timer(kAnswerTime, &LinkRace::give_current_up);
}

void LinkRace::give_current_up() { lose(*current_, {Errc::timed_out, Sink::to_text(*current_) + " has not answered in time"}, false); }

void LinkRace::start_again() {
  stage_ = Stage::gathering;
  current_ = nullptr;
  for (const auto& candidate : candidates_)
    if (candidate->state == Candidate::State::lost) dial_later(*candidate, candidate->next_pause());
}

}  // namespace ringlet
