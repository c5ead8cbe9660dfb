// Which machines take part in a job, and which ranks they get.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/job/job.hpp"

namespace ringlet::job {

namespace {

constexpr int kRefused = 126;

}  // namespace

void Job::reach(std::size_t index, std::unique_ptr<MessageChannel> channel) {
  // The job may have ended while the machine was dialled.
  if (stage_ != Stage::asking || ended_ || stopping()) return;
  JobMachine& machine = machines_[index];
  machine.channel = std::move(channel);
  machine.channel->start([this, index](Message message) { on_message(index, std::move(message)); },
                         [this, index](const Status& status) { on_lost(index, status); });
  const Candidate& candidate = machine.candidate;
  machine.channel->send(Hail{kProtocol, options_.version, options_.group, options_.from, candidate.program, candidate.directory});
  if (timer_ == 0) timer_ = loop_.after(options_.answer_time, [this] { on_answers_late(); });
}

void Job::on_answers_late() {
  for (std::size_t i = 0; i < machines_.size() && stage_ == Stage::asking; ++i)
    if (!machines_[i].answered) miss(i, fmt::format("{} did not answer", machines_[i].candidate.name));
}

void Job::miss(std::size_t index, const std::string& why, int exit_code) {
  if (stage_ != Stage::asking || ended_ || stopping()) return;
  JobMachine& machine = machines_[index];
  machine.answered = machine.over = true;
  drop_channel(index);
  refusals_ += (refusals_.empty() ? "" : options_.between_refusals) + why;
  refusal_code_ = std::max(refusal_code_, exit_code);
  choose();
}

void Job::on(std::size_t index, Offer& offer) {
  JobMachine& machine = machines_[index];
  if (machine.offer || stage_ != Stage::asking) return on_lost(index, {Errc::protocol_error, "it answered twice"});
  machine.offer = std::move(offer);
  machine.answered = true;
  const Offer& told = *machine.offer;
  if (told.protocol != kProtocol)
    return miss(index, fmt::format(fmt::runtime(options_.other_protocol), machine.candidate.name, shown(told.version), options_.version,
                                   told.protocol, kProtocol));
  if (told.refusal.empty()) return choose();
  miss(index, fmt::format(fmt::runtime(options_.refusal), machine.candidate.name, shown(told.refusal)),
       told.refusal_code == 0 ? kRefused : static_cast<int>(std::min(told.refusal_code, 255u)));
}

void Job::drop_channel(std::size_t index) {
  // The channel may be the caller.
  loop_.defer([channel = std::shared_ptr<MessageChannel>(std::move(machines_[index].channel))] {});
}

void Job::choose() {
  if (stage_ != Stage::asking || ended_) return;
  if (!std::all_of(machines_.begin(), machines_.end(), [](const JobMachine& machine) { return machine.answered; })) return;
  std::vector<std::size_t> chosen;
  std::vector<Place> places;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const JobMachine& machine = machines_[i];
    if (!machine.channel) continue;
    chosen.push_back(i);
    const std::size_t free_ranks = std::min<std::size_t>(machine.offer->free_ranks, kMaxRanksPerMachine);
    places.push_back({machine.candidate.name, static_cast<int>(free_ranks), machine.candidate.ranks});
  }
  const int code = std::max(refusal_code_, 1);
  if (chosen.empty() || (options_.every_machine && !refusals_.empty()))
    return fail(code, refusals_.empty() ? "no machine takes part" : options_.before_refusals + refusals_);
  if (static_cast<int>(chosen.size()) < options_.at_least)
    return fail(code, fmt::format("{} of at least {} machines would run it: {}", chosen.size(), options_.at_least, refusals_));
  const auto ranks = assign_ranks(places, options_.wish);
  if (!ranks.ok()) return fail(1, ranks.status().text());
  if (!refusals_.empty()) events_.on_notice(refusals_ + "; the job goes on without");
  seat_ranks(chosen, ranks.value());
  bind_port();
}

void Job::seat_ranks(const std::vector<std::size_t>& chosen, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    JobMachine& machine = machines_[chosen[i]];
    machine.first_rank = static_cast<int>(ranks_.size());
    machine.ranks = ranks[i];
    for (int rank = 0; rank < machine.ranks; ++rank) ranks_.push_back({static_cast<int>(ranks_.size()), machine.candidate.name});
    if (machine.ranks > 0) continue;
    machine.over = true;
    drop_channel(chosen[i]);
  }
  first_machine_ = chosen.front();
}

void Job::bind_port() {
  stage_ = Stage::opening;
  events_.on_chosen(ranks_);
  loop_.cancel(timer_);
  timer_ = loop_.after(options_.answer_time, [this] { on_start_late(); });
  const JobMachine& first = machines_[first_machine_];
  const std::string& host = first.candidate.meeting_host;
  MeetingPoint meeting{host.find(':') == std::string::npos ? "0.0.0.0" : "::", 0, host};
  if (first.ranks == static_cast<int>(ranks_.size())) meeting = {"127.0.0.1", 0, "127.0.0.1"};
  if (options_.choose_meeting) {
    std::vector<Offer> offers;
    for (const JobMachine& machine : machines_)
      if (machine.channel) offers.push_back(*machine.offer);
    meeting = options_.choose_meeting(offers);
  }
  coordinator_ = meeting.reached_as;
  first.channel->send(BindPort{meeting.listen_host, static_cast<std::uint32_t>(meeting.port)});
}

void Job::on_start_late() {
  std::string late;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].ranks > 0 && !machines_[i].started && (stage_ == Stage::started || i == first_machine_))
      late += (late.empty() ? "" : ", ") + machines_[i].candidate.name;
  fail(1, fmt::format("{} did not start the ranks within {} s", late, options_.answer_time.whole_milliseconds() / 1000));
}

}  // namespace ringlet::job
