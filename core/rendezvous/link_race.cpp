#include "core/rendezvous/link_race.hpp"

#include <algorithm>
#include <utility>

#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

constexpr Duration kHeadStart = Duration::milliseconds(2);
constexpr Duration kMinGatheringTime = Duration::milliseconds(100), kMaxGatheringTime = Duration::milliseconds(400);
constexpr Duration kNominationTimeout = Duration::seconds(5);

}  // namespace

LinkRace::LinkRace(EventLoop& loop, Dialler& dialler, LinkRaceOptions options, OnEnd on_end)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_{[this](LinkCandidate& candidate) { on_ready(candidate); },
                 [this](LinkCandidate& candidate, const wire::LinkProbe& answer) { on_probe_answer(candidate, answer); },
                 [this](LinkCandidate& candidate) { on_accepted(candidate); },
                 [this](LinkCandidate& candidate, const Status& status) { on_lost(candidate, status); }},
      on_end_(std::move(on_end)) {
  Duration head_start{};
  for (const wire::Endpoint& target : options_.targets) {
    candidates_.push_back(std::make_unique<LinkCandidate>(loop_, dialler, options_.candidate, target, callbacks_));
    candidates_.back()->dial_after(head_start);
    head_start = head_start + kHeadStart;
  }
}

LinkRace::~LinkRace() { cancel_timer(); }

std::vector<LinkCandidate*> LinkRace::ready() const {
  std::vector<LinkCandidate*> found;
  for (const auto& candidate : candidates_)
    if (candidate->is_ready()) found.push_back(candidate.get());
  return found;
}

bool LinkRace::any_pending() const {
  return std::any_of(candidates_.begin(), candidates_.end(), [](const auto& one) { return one->is_pending(); });
}

void LinkRace::set_timer(Duration delay, void (LinkRace::*member)()) {
  cancel_timer();
  timer_ = loop_.after(delay, [this, member] {
    timer_ = 0;
    (this->*member)();
  });
}

void LinkRace::cancel_timer() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
}

// --- gathering ---

void LinkRace::on_ready(LinkCandidate& candidate) {
  // No link is faster than one that does not leave this machine, so there is no need to wait for others.
  if (!any_pending() || candidate.is_local()) return stop_gathering();
  if (ready().size() == 1)
    set_timer(std::clamp((loop_.now() - candidate.dialled_at()) * 8, kMinGatheringTime, kMaxGatheringTime), &LinkRace::stop_gathering);
}

void LinkRace::stop_gathering() {
  cancel_timer();
  if (ready().empty()) return gather_again();
  for (const auto& candidate : candidates_) candidate->pause();
  std::vector<LinkCandidate*> kept;
  for (LinkCandidate* candidate : ready()) {
    const bool known =
        std::any_of(kept.begin(), kept.end(), [&](LinkCandidate* one) { return is_same_way(one->path(), candidate->path()); });
    known ? candidate->drop() : kept.push_back(candidate);
  }
  if (kept.size() == 1) return nominate_best();
  stage_ = Stage::measuring;
  measurement_ = std::make_unique<LinkMeasurement>(loop_, kept, [this] { nominate_best(); });
  measurement_->start();
}

void LinkRace::gather_again() {
  stage_ = Stage::gathering;
  nominee_ = nullptr;
  measurement_.reset();
  for (const auto& candidate : candidates_) candidate->resume();
}

// --- the choice ---

void LinkRace::on_probe_answer(LinkCandidate& candidate, const wire::LinkProbe& answer) {
  if (measurement_ && measurement_->on_answer(candidate, answer)) return;
  candidate.lose({Errc::protocol_error, candidate.text() + " answered a probe that was not sent"}, true);
}

void LinkRace::nominate_best() {
  stage_ = Stage::nominating;
  const auto found = ready();
  if (found.empty()) return gather_again();
  std::vector<wire::Path> paths;
  for (LinkCandidate* candidate : found) paths.push_back(candidate->path());
  nominee_ = found[choose_path(paths)];
  nominee_->path().tried = static_cast<std::uint32_t>(candidates_.size());
  set_timer(kNominationTimeout, &LinkRace::give_nominee_up);
  nominee_->nominate();
}

void LinkRace::give_nominee_up() { nominee_->lose({Errc::timed_out, nominee_->text() + " has not answered in time"}, false); }

void LinkRace::on_accepted(LinkCandidate& candidate) { end(Winner{candidate.take(), candidate.path()}); }

// --- the end ---

void LinkRace::on_lost(LinkCandidate& candidate, const Status& status) {
  last_failure_ = status;
  const bool hopeless =
      std::all_of(candidates_.begin(), candidates_.end(), [](const auto& one) { return one->state() == LinkCandidate::State::hopeless; });
  if (hopeless) return end(Status(status.code() == Errc::protocol_error ? Errc::protocol_error : Errc::mismatch, status.text()));
  switch (stage_) {
    case Stage::gathering:
      if (ready().empty())
        for (const auto& one : candidates_) one->resume();
      else if (!any_pending())
        stop_gathering();
      return;
    case Stage::measuring:
      return measurement_->on_lost(candidate);
    case Stage::nominating:
      if (&candidate != nominee_) return;
      cancel_timer();
      return nominate_best();
    case Stage::over:
      return;
  }
}

void LinkRace::end(Result<Winner> outcome) {
  stage_ = Stage::over;
  cancel_timer();
  for (const auto& candidate : candidates_) candidate->finish();
  const OnEnd on_end = std::exchange(on_end_, nullptr);
  on_end(std::move(outcome));
}

}  // namespace ringlet
