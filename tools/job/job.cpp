#include "tools/job/job.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/address.hpp"

namespace ringlet::job {

namespace {

std::uint32_t milliseconds(Duration duration) { return static_cast<std::uint32_t>(duration.whole_milliseconds()); }

}  // namespace

Job::Job(EventLoop& loop, JobOptions options, std::vector<Candidate> candidates, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      policy_(loop, options_.end,
              {.stop = [this](int signal_number, Duration grace) { stop_all(signal_number, grace); },
               .send =
                   [this](int signal_number) {
                     if (stage_ != Stage::started) return;
                     for (JobMachine& machine : machines_)
                       if (machine.channel) machine.channel->send(Order{static_cast<std::uint32_t>(signal_number), false, 0});
                   }}) {
  for (Candidate& candidate : candidates) machines_.add(std::move(candidate));
  if (options_.end.elastic) make_restarts();
  if (options_.start.trace)
    traces_.emplace(loop_, machines_,
                    JobTraces::Hooks{.ranks_over = [this] { return ranks_over(); },
                                     .tell_progress = [this](const std::string& text) { tell_progress(text); },
                                     .leave = [this](const std::vector<std::size_t>& machines) { leave(machines); }});
}

void Job::make_restarts() {
  restarts_.emplace(loop_, options_, machines_, policy_,
                    JobRestarts::Hooks{.ask_to_listen = [this](const std::vector<std::size_t>& machines) { ask_to_listen(machines); },
                                       .end = [this] { stop_all(SIGTERM, options_.end.grace); },
                                       .tell_progress = [this](const std::string& text) { tell_progress(text); },
                                       .on_notice = [this](const std::string& text) { events_.on_notice(text); }});
}

void Job::tell_progress(const std::string& text) const {
  if (!options_.quiet) events_.on_notice(text);
}

Job::~Job() {
  loop_.cancel(timer_);
  loop_.cancel(stragglers_timer_);
}

void Job::on_message(std::size_t index, Message message) {
  if (ended_) return;
  std::visit([&](auto& value) { on(index, value); }, message);
}

void Job::reach(std::size_t index, std::unique_ptr<MessageChannel> channel) {
  JobMachine& machine = machines_[index];
  // The job may have ended while the machine was dialled.
  if (!waits_for(machine) || ended_ || stopping()) return;
  machine.channel = std::move(channel);
  machine.channel->start([this, index](Message message) { on_message(index, std::move(message)); },
                         [this, index](const Status& status) { on_lost(index, status); });
  const Candidate& candidate = machine.candidate;
  Hail hail{kProtocol, options_.version, options_.group, options_.from, candidate.program, candidate.directory};
  if (options_.introduce) options_.introduce(hail, machine.channel->binding());
  machine.channel->send(hail);
  if (timer_ != 0 || !options_.answer_time || machine.late) return;
  timer_ = loop_.after(*options_.answer_time, [this] { miss_unanswered("did not answer"); });
}

void Job::miss_unanswered(const std::string& why) {
  for (std::size_t i = 0; i < machines_.size() && stage_ == Stage::asking; ++i)
    if (!machines_[i].answered) miss(i, fmt::format("{} {}", machines_[i].candidate.name, why));
}

void Job::miss(std::size_t index, const std::string& why, int exit_code) {
  JobMachine& machine = machines_[index];
  if (!waits_for(machine) || ended_ || stopping()) return;
  machine.answered = machine.over = true;
  drop_channel(index);
  if (machine.late) {
    events_.on_notice("the job goes on without another machine; " + why);
    return finish_if_over();
  }
  refusals_ += (refusals_.empty() ? "" : "\n  ") + why;
  refusal_code_ = std::max(refusal_code_, exit_code);
  choose();
}

void Job::on(std::size_t index, Offer& offer) {
  JobMachine& machine = machines_[index];
  if (machine.offer || !waits_for(machine)) return on_lost(index, {Errc::protocol_error, "it answered twice"});
  machine.offer = std::move(offer);
  machine.answered = true;
  const Offer& told = *machine.offer;
  if (told.protocol != kProtocol)
    return miss(index, words_of(index, fmt::format("its `ringlet` {}speaks version {} of the protocol of jobs, this one {}; install the "
                                                   "same on both",
                                                   told.version.empty() ? "" : told.version + " ", told.protocol, kProtocol)));
  if (options_.check_identity)
    if (const auto mistrust = options_.check_identity(machine.candidate, told, machine.channel->binding()))
      return miss(index, *mistrust, kNotAllowed);
  if (told.refusal.empty()) return machine.late ? start_late(index) : choose();
  miss(index, words_of(index, told.refusal), static_cast<int>(std::clamp(told.refusal_code, 1u, 255u)));
}

bool Job::waits_for(const JobMachine& machine) const {
  return machine.late ? !machine.answered || machine.ranks == 0 : stage_ == Stage::asking;
}

int Job::wanted_ranks() const {
  if (!options_.most || stage_ != Stage::started || !restarts_ || stopping()) return 0;
  return restarts_->wanted_ranks();
}

void Job::start_late(std::size_t index) {
  JobMachine& machine = machines_[index];
  const int ranks = std::min(wanted_ranks(), static_cast<int>(std::min<std::uint32_t>(machine.offer->free_ranks, kMaxRanksPerMachine)));
  if (ranks == 0) {
    machine.over = true;
    drop_channel(index);
    return finish_if_over();
  }
  machines_.give_ranks(index, ranks);
  tell_progress(fmt::format("{} joins with {} {}", machine.candidate.name, ranks, ranks == 1 ? "rank" : "ranks"));
  if (events_.on_added) events_.on_added(machines_.ranks());
  StartRanks start = machines_.make_start(index, order(), options_.prefix);
  start.waits = true;
  machine.channel->send(start);
  for (int i = 0; i < ranks; ++i) restarts_->restarter().add_waiting();
}

void Job::drop_channel(std::size_t index) {
  // The channel may be the caller.
  loop_.defer([channel = std::shared_ptr<MessageChannel>(std::move(machines_[index].channel))] {});
}

void Job::wait_for_stragglers() {
  loop_.cancel(std::exchange(stragglers_timer_, 0));
  const std::vector<std::size_t> here = machines_.willing();
  if (!options_.straggler_time || options_.every_machine || here.empty() || static_cast<int>(here.size()) < options_.at_least) return;
  if (!assign_ranks(machines_.places_of(here), options_.wish).ok()) return;
  const double seconds = static_cast<double>(options_.straggler_time->whole_milliseconds()) / 1000;
  stragglers_timer_ = loop_.after(*options_.straggler_time,
                                  [this, seconds] { miss_unanswered(fmt::format("did not answer {} s after the others had", seconds)); });
}

void Job::choose() {
  if (stage_ != Stage::asking || ended_) return;
  if (!std::all_of(machines_.begin(), machines_.end(), [](const JobMachine& machine) { return machine.answered; }))
    return wait_for_stragglers();
  loop_.cancel(std::exchange(stragglers_timer_, 0));
  const std::vector<std::size_t> chosen = machines_.willing();
  if (chosen.empty() || (options_.every_machine && !refusals_.empty()))
    return fail(refusal_code_, refusals_.empty() ? "no machine takes part" : refusals_);
  if (static_cast<int>(chosen.size()) < options_.at_least)
    return fail(refusal_code_, fmt::format("{} of at least {} machines would run it: {}", chosen.size(), options_.at_least, refusals_));
  auto ranks = assign_ranks(machines_.places_of(chosen), options_.wish);
  const auto count = [&] { return std::accumulate(ranks.value().begin(), ranks.value().end(), 0); };
  if (ranks.ok() && options_.most && count() > *options_.most) ranks = assign_ranks(machines_.places_of(chosen), {options_.most, 1});
  const std::string without = refusals_.empty() ? "" : "; without\n  " + refusals_;
  if (!ranks.ok()) return fail(1, ranks.status().text() + without);
  if (restarts_ && count() < options_.end.elastic->least)
    return fail(1, fmt::format("{} {} can be had, and the job needs {}{}", count(), count() == 1 ? "rank" : "ranks",
                               options_.end.elastic->least, without));
  if (!refusals_.empty()) events_.on_notice("the job goes on without some machines; " + refusals_);
  seat_ranks(chosen, ranks.value());
  bind_port();
}

void Job::seat_ranks(const std::vector<std::size_t>& chosen, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    machines_.give_ranks(chosen[i], ranks[i]);
    if (ranks[i] > 0) continue;
    machines_[chosen[i]].over = true;
    drop_channel(chosen[i]);
  }
  first_machine_ = chosen.front();
}

void Job::bind_port() {
  stage_ = Stage::opening;
  events_.on_chosen(machines_.ranks());
  loop_.cancel(timer_);
  if (options_.answer_time) timer_ = loop_.after(*options_.answer_time, [this] { on_start_late(); });
  std::vector<std::size_t> machines;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].ranks > 0) machines.push_back(i);
  ask_to_listen(machines);
}

/// The first of these machines, which are those whose ranks are to meet, listens.
void Job::ask_to_listen(const std::vector<std::size_t>& machines) {
  const MeetingPoint meeting = choose_meeting(options_, machines_, machines);
  coordinator_ = meeting.reached_as;
  machines_[machines.front()].channel->send(meeting.listen);
}

void Job::on_start_late() {
  std::string late;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].ranks > 0 && !machines_[i].started && (stage_ == Stage::started || i == first_machine_))
      late += (late.empty() ? "" : ", ") + machines_[i].candidate.name;
  fail(1, fmt::format("{} did not start the ranks within {} s", late, options_.answer_time->whole_milliseconds() / 1000));
}

void Job::on(std::size_t index, const PortBound& opened) {
  const bool renews = restarts_ && restarts_->awaits_port_of(index);
  if (!renews && (stage_ != Stage::opening || index != first_machine_))
    return on_lost(index, {Errc::protocol_error, "it opened a place to meet that nobody asked for"});
  stage_ = Stage::started;
  coordinator_ = to_string(Address{coordinator_, static_cast<std::uint16_t>(opened.port)});
  if (renews) return restarts_->start_renewed(coordinator_);
  if (events_.on_listening) events_.on_listening(static_cast<int>(opened.port));
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].channel) machines_[i].channel->send(machines_.make_start(i, order(), options_.prefix));
  for (int rank = 0; restarts_ && rank < machines_.rank_count(); ++rank) restarts_->restarter().add();
}

StartRanks Job::order() const {
  StartRanks start = options_.start;
  start.coordinator = coordinator_;
  start.grace_ms = milliseconds(options_.end.grace);
  start.elastic = restarts_.has_value();
  return start;
}

void Job::on(std::size_t index, const RanksStarted& started) {
  const bool again = machines_[index].started;
  if (stage_ != Stage::started || !machines_.note_started(index, started))
    return on_lost(index, {Errc::protocol_error, "it started other ranks than it was asked to"});
  if (again || machines_[index].late ||
      !std::all_of(machines_.begin(), machines_.end(), [](const JobMachine& one) { return one.started || one.ranks == 0; }))
    return;
  loop_.cancel(timer_);
  events_.on_started();
}

void Job::on(std::size_t index, const Failed& failed) {
  const JobMachine& machine = machines_[index];
  const Failed told{failed.exit_code, words_of(index, failed.text)};
  if (restarts_ && stage_ == Stage::started && (machine.started || machine.late) && !stopping()) return restarts_->let_go(index, told);
  fail(static_cast<int>(told.exit_code), told.text);
}

void Job::on(std::size_t index, const Notice& notice) { events_.on_notice(words_of(index, notice.text)); }

std::string Job::words_of(std::size_t index, const std::string& text) const {
  const std::string& name = machines_[index].candidate.name;
  return (name.empty() ? "" : name + ": ") + text;
}

void Job::on(std::size_t index, const Output& output) {
  if (machines_.find_rank(index, output.rank) == nullptr)
    return on_lost(index, {Errc::protocol_error, "it sent output of a rank that is not its"});
  events_.on_output(index, output);
}

void Job::on(std::size_t index, const Exit& exit) {
  RankExit* rank = machines_.find_rank(index, exit.rank);
  if (rank == nullptr || rank->ended())
    return on_lost(index, {Errc::protocol_error, "it told the end of a rank that is not its, or has ended"});
  if (exit.signal != 0)
    rank->signal = static_cast<int>(exit.signal);
  else
    rank->code = static_cast<int>(exit.code);
  rank->stopped = exit.stopped;
  rank->exec_error = static_cast<int>(exit.exec_error);
  if (exit.follows > 0) rank->follows = static_cast<int>(exit.follows) - 1;
  const bool may_return = restarts_ && rank->exec_error == 0 && !policy_.ended_by_hang_up(*rank);
  const bool returns = may_return && restarts_->restarter().note_exit(*rank);
  if (!returns) policy_.note_exit(*rank, machines_[index].candidate.program);
  if (traces_) traces_->note_exit();
  // Its machines wait for the end of an elastic job, and it waits for nobody that lingers.
  if (restarts_ && restarts_->restarter().finished() && !stopping() && ranks_over()) stop_all(SIGTERM, options_.end.grace);
}

void Job::on(std::size_t index, const Membership& membership) {
  if (!restarts_ || machines_.find_rank(index, membership.rank) == nullptr)
    return on_lost(index, {Errc::protocol_error, "it told of a group of a rank that is not its"});
  restarts_->note_member(index, membership);
}

void Job::on(std::size_t index, const InputTaken&) {
  if (!options_.start.has_input || machines_.find_rank(index, options_.start.input_rank) == nullptr)
    return on_lost(index, {Errc::protocol_error, "it took standard input that it does not get"});
  if (events_.on_input_taken) events_.on_input_taken();
}

void Job::on(std::size_t index, const TracePiece& piece) {
  const RankExit* rank = machines_.find_rank(index, piece.rank);
  if (!traces_ || rank == nullptr || piece.restarts > static_cast<std::uint32_t>(rank->restarts))
    return on_lost(index, {Errc::protocol_error, "it sent a trace of a process that is not its"});
  if (events_.on_trace) events_.on_trace(piece);
  if (machines_[index].channel && !traces_->given_up()) machines_[index].channel->send(TraceTaken{});
}

void Job::on_signal(int signal_number) {
  const bool ends = signal_number == SIGINT || signal_number == SIGTERM;
  const bool waits_for_traces = traces_ && stage_ == Stage::started && ranks_over();
  policy_.on_signal(signal_number);
  if (ends && waits_for_traces && !ended_) traces_->give_up();
}

void Job::leave(const std::vector<std::size_t>& machines) {
  for (const std::size_t i : machines) {
    machines_[i].over = true;
    drop_channel(i);
  }
  finish_if_over();
}

void Job::send_input(std::string_view bytes) {
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].channel && machines_.find_rank(i, options_.start.input_rank) != nullptr)
      machines_[i].channel->send(Input{std::string(bytes)});
}

void Job::on(std::size_t index, const Over&) {
  machines_[index].over = true;
  finish_if_over();
}

void Job::on_lost(std::size_t index, const Status& status) {
  JobMachine& machine = machines_[index];
  if (!machine.channel || ended_) return;
  const std::string why = fmt::format("lost {} ({}): {}", machine.candidate.name, machine.channel->peer_name(), status.text());
  if (waits_for(machine)) return miss(index, why);
  drop_channel(index);
  if (machine.over) return;
  machine.over = true;
  if (restarts_ && stage_ == Stage::started && !stopping()) tell_progress(why);
  machines_.lose(index);
  if (restarts_) restarts_->note_lost(index);
  policy_.note_lost(why, stage_ == Stage::started);
  finish_if_over();
}

void Job::fail(int exit_code, std::string text) {
  if (!ended_) policy_.fail(exit_code, std::move(text));
}

void Job::stop_all(int signal_number, Duration grace) {
  loop_.cancel(timer_);
  if (restarts_) restarts_->restarter().finish();
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    JobMachine& machine = machines_[i];
    if (!machine.channel || machine.over) continue;
    if (stage_ == Stage::started && machine.ranks > 0) {
      machine.channel->send(Order{static_cast<std::uint32_t>(signal_number), true, milliseconds(grace)});
      machine.channel->expect_end();
    } else {
      machine.over = true;
      drop_channel(i);
    }
  }
  finish_if_over();
}

void Job::take_output(std::size_t machine, bool error, std::size_t bytes) {
  if (machines_[machine].channel && bytes > 0) machines_[machine].channel->send(Credit{static_cast<std::uint32_t>(bytes), error});
}

bool Job::ranks_over() const {
  return std::all_of(machines_.ranks().begin(), machines_.ranks().end(), [this](const RankExit& rank) {
    return (rank.ended() || rank.lost) && !(restarts_ && restarts_->restarter().counts(rank.rank));
  });
}

void Job::finish_if_over() {
  const auto over = [](const JobMachine& machine) { return machine.over || (!machine.channel && machine.ranks == 0); };
  if (ended_ || !std::all_of(machines_.begin(), machines_.end(), over)) return;
  ended_ = true;
  loop_.cancel(timer_);
  if (traces_) traces_->finish();
  policy_.finish();
  if (restarts_) restarts_->restarter().finish();
  loop_.defer(alive_.wrap([this] {
    for (JobMachine& machine : machines_) machine.channel.reset();
    JobResult result = policy_.make_result(machines_.ranks());
    result.traces_given_up = traces_ && traces_->given_up();
    events_.on_end(result);
  }));
}

}  // namespace ringlet::job
