// Who takes part in a job.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/agent/run_job.hpp"

namespace ringlet::agent {

namespace {

constexpr int kRefused = 126;

}  // namespace

void RunJob::reach(std::size_t index, std::unique_ptr<Link> link) {
  // Dropped: the job has ended while it was dialled.
  if (stage_ != Stage::asking || ended_) return;
  Machine& machine = machines_[index];
  machine.link = std::make_unique<MessageLink>(
      loop_, std::move(link), [this, index](Message message) { on_message(index, std::move(message)); },
      [this, index](const Status& status) { on_lost(index, status); });
  machine.link->send(Hail{kProtocol, options_.version, options_.group, options_.from, machine.candidate.program, options_.directory});
  if (timer_ != 0) return;
  timer_ = loop_.after(kAnswerTime, [this] {
    for (std::size_t i = 0; i < machines_.size() && stage_ == Stage::asking; ++i)
      if (!machines_[i].answered) miss(i, fmt::format("{} did not answer", machines_[i].candidate.name));
  });
}

void RunJob::miss(std::size_t index, const std::string& why) {
  if (stage_ != Stage::asking || ended_) return;
  Machine& machine = machines_[index];
  machine.answered = machine.over = true;
  drop_link(index);
  refusals_ += (refusals_.empty() ? "" : "; ") + why;
  choose();
}

void RunJob::on(std::size_t index, Offer& offer) {
  Machine& machine = machines_[index];
  if (machine.offer || stage_ != Stage::asking) return on_lost(index, {Errc::protocol_error, "it answered twice"});
  machine.offer = std::move(offer);
  machine.answered = true;
  const Offer& told = *machine.offer;
  const std::string& name = machine.candidate.name;
  if (told.protocol != kProtocol)
    miss(index, fmt::format("{} has Ringlet {} and this machine {}, which cannot work together; install the same on both", name,
                            told.version, options_.version));
  else if (!told.refusal.empty()) {
    refusal_code_ = kRefused;
    miss(index, told.refusal);
  } else {
    choose();
  }
}

void RunJob::drop_link(std::size_t index) {
  // It may be the caller.
  loop_.defer([link = std::shared_ptr<MessageLink>(std::move(machines_[index].link))] {});
}

void RunJob::choose() {
  if (stage_ != Stage::asking || ended_) return;
  if (!std::all_of(machines_.begin(), machines_.end(), [](const Machine& machine) { return machine.answered; })) return;
  std::vector<std::size_t> chosen;
  std::vector<Place> places;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const Machine& machine = machines_[i];
    if (!machine.link) continue;
    chosen.push_back(i);
    places.push_back({machine.candidate.name, static_cast<int>(std::min<std::size_t>(machine.offer->free_ranks, kMaxRanksPerMachine))});
  }
  loop_.cancel(timer_);
  const int code = refusal_code_ == 0 ? 1 : refusal_code_;
  if (chosen.empty() || (options_.every_machine && !refusals_.empty()))
    return fail_with(code, refusals_.empty() ? "no machine takes part" : refusals_);
  if (static_cast<int>(chosen.size()) < options_.at_least)
    return fail_with(code, fmt::format("{} of at least {} machines would run it: {}", chosen.size(), options_.at_least, refusals_));
  const auto ranks = assign_ranks(places, options_.wish);
  if (!ranks.ok()) return fail_with(1, ranks.status().text());
  if (!refusals_.empty()) events_.on_notice(refusals_ + "; the job goes on without");
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Machine& machine = machines_[chosen[i]];
    machine.first_rank = static_cast<int>(ranks_.size());
    machine.ranks = ranks.value()[i];
    for (int rank = 0; rank < machine.ranks; ++rank)
      ranks_.push_back({static_cast<int>(ranks_.size()), machine.candidate.name, 0, {}, {}, false, false});
    if (machine.ranks > 0) continue;
    machine.over = true;
    drop_link(chosen[i]);
  }
  stage_ = Stage::opening;
  events_.on_chosen(static_cast<int>(ranks_.size()));
  timer_ = loop_.after(kAnswerTime, [this] { on_start_timeout(); });
  Machine& first = machines_[chosen.front()];
  const bool alone = first.ranks == static_cast<int>(ranks_.size());
  if (alone) first.candidate.meeting_host = "127.0.0.1";
  const bool v6 = first.candidate.meeting_host.find(':') != std::string::npos;
  first.link->send(Open{alone ? "127.0.0.1" : v6 ? "::" : "0.0.0.0"});
}

}  // namespace ringlet::agent
