#include "tools/job/job.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
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
                   }}),
      alive_(std::make_shared<bool>(true)) {
  for (Candidate& candidate : candidates) machines_.emplace_back().candidate = std::move(candidate);
}

Job::~Job() {
  *alive_ = false;
  loop_.cancel(timer_);
}

void Job::on_message(std::size_t index, Message message) {
  if (ended_) return;
  std::visit([&](auto& value) { on(index, value); }, message);
}

void Job::on(std::size_t index, const PortBound& opened) {
  if (stage_ != Stage::opening || index != first_machine_)
    return on_lost(index, {Errc::protocol_error, "it opened a place to meet that nobody asked for"});
  stage_ = Stage::started;
  coordinator_ = to_string(Address{coordinator_, static_cast<std::uint16_t>(opened.port)});
  if (events_.on_listening) events_.on_listening(static_cast<int>(opened.port));
  for (JobMachine& machine : machines_)
    if (machine.channel) machine.channel->send(make_start(machine));
}

StartRanks Job::make_start(const JobMachine& machine) const {
  const Candidate& candidate = machine.candidate;
  StartRanks start;
  start.job = options_.job;
  start.first_rank = static_cast<std::uint32_t>(machine.first_rank);
  start.ranks = static_cast<std::uint32_t>(machine.ranks);
  start.world_size = static_cast<std::uint32_t>(ranks_.size());
  start.coordinator = coordinator_;
  start.token = options_.token;
  start.program = candidate.program;
  start.arguments = options_.arguments;
  start.environment = candidate.environment;
  start.environment.insert(start.environment.end(), options_.environment.begin(), options_.environment.end());
  start.directory = candidate.directory;
  start.preferred_directory = options_.preferred_directory;
  start.grace_ms = milliseconds(options_.end.grace);
  start.terminal_columns = options_.terminal_columns;
  if (options_.prefix && options_.terminal_columns > 0) {
    const auto prefix = static_cast<std::uint32_t>(rank_prefix(0, static_cast<int>(ranks_.size()), candidate.name).size());
    start.terminal_columns = std::max(options_.terminal_columns, prefix + 1) - prefix;
  }
  start.has_input = options_.input_rank.has_value();
  start.input_rank = static_cast<std::uint32_t>(options_.input_rank.value_or(0));
  return start;
}

void Job::on(std::size_t index, const RanksStarted& started) {
  JobMachine& machine = machines_[index];
  if (machine.started || static_cast<int>(started.pids.size()) != machine.ranks || stage_ != Stage::started)
    return on_lost(index, {Errc::protocol_error, "it started other ranks than it was asked to"});
  machine.started = true;
  for (int i = 0; i < machine.ranks; ++i)
    ranks_[static_cast<std::size_t>(machine.first_rank + i)].pid = static_cast<int>(started.pids[static_cast<std::size_t>(i)]);
  if (!std::all_of(machines_.begin(), machines_.end(), [](const JobMachine& one) { return one.started || one.ranks == 0; })) return;
  loop_.cancel(timer_);
  events_.on_started();
}

void Job::on(std::size_t index, const Failed& failed) {
  const std::string& name = machines_[index].candidate.name;
  fail(static_cast<int>(failed.exit_code), (name.empty() ? "" : name + ": ") + shown(failed.text));
}

void Job::on(std::size_t index, const Notice& notice) {
  const std::string& name = machines_[index].candidate.name;
  events_.on_notice((name.empty() ? "" : name + ": ") + shown(notice.text));
}

void Job::on(std::size_t index, const Output& output) {
  if (find_rank(index, output.rank) == nullptr) return on_lost(index, {Errc::protocol_error, "it sent output of a rank that is not its"});
  events_.on_output(index, output);
}

void Job::on(std::size_t index, const Exit& exit) {
  RankExit* rank = find_rank(index, exit.rank);
  if (rank == nullptr || rank->ended())
    return on_lost(index, {Errc::protocol_error, "it told the end of a rank that is not its, or has ended"});
  if (exit.signal != 0)
    rank->signal = static_cast<int>(exit.signal);
  else
    rank->code = static_cast<int>(exit.code);
  rank->stopped = exit.stopped;
  rank->exec_error = static_cast<int>(exit.exec_error);
  policy_.note_exit(*rank, machines_[index].candidate.program);
}

void Job::on(std::size_t index, const InputTaken&) {
  if (!options_.input_rank || find_rank(index, static_cast<std::uint32_t>(*options_.input_rank)) == nullptr)
    return on_lost(index, {Errc::protocol_error, "it took standard input that it does not get"});
  if (events_.on_input_taken) events_.on_input_taken();
}

void Job::send_input(std::string_view bytes) {
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].channel && find_rank(i, static_cast<std::uint32_t>(*options_.input_rank)) != nullptr)
      machines_[i].channel->send(Input{std::string(bytes)});
}

void Job::on(std::size_t index, const Over&) {
  machines_[index].over = true;
  finish_if_over();
}

void Job::on_lost(std::size_t index, const Status& status) {
  JobMachine& machine = machines_[index];
  if (!machine.channel || ended_) return;
  const std::string why =
      fmt::format(fmt::runtime(options_.lost_machine), machine.candidate.name, machine.channel->peer_name(), status.text());
  if (stage_ == Stage::asking) return miss(index, why);
  drop_channel(index);
  if (machine.over) return;
  machine.over = true;
  for (int i = 0; i < machine.ranks; ++i) {
    RankExit& rank = ranks_[static_cast<std::size_t>(machine.first_rank + i)];
    rank.lost = !rank.ended();
  }
  policy_.note_lost(why, stage_ == Stage::started);
  finish_if_over();
}

void Job::fail(int exit_code, std::string text) {
  if (!ended_) policy_.fail(exit_code, std::move(text));
}

void Job::stop_all(int signal_number, Duration grace) {
  loop_.cancel(timer_);
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    JobMachine& machine = machines_[i];
    if (!machine.channel || machine.over) continue;
    if (stage_ == Stage::started) {
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
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankExit& rank) { return rank.ended() || rank.lost; });
}

RankExit* Job::find_rank(std::size_t index, std::uint32_t rank) {
  const JobMachine& machine = machines_[index];
  const auto first = static_cast<std::uint32_t>(machine.first_rank);
  if (rank < first || rank >= first + static_cast<std::uint32_t>(machine.ranks)) return nullptr;
  return &ranks_[rank];
}

void Job::finish_if_over() {
  const auto over = [](const JobMachine& machine) { return machine.over || (!machine.channel && machine.ranks == 0); };
  if (ended_ || !std::all_of(machines_.begin(), machines_.end(), over)) return;
  ended_ = true;
  loop_.cancel(timer_);
  policy_.finish();
  loop_.defer([this, alive = alive_] {
    if (!*alive) return;
    for (JobMachine& machine : machines_) machine.channel.reset();
    events_.on_end(policy_.make_result(ranks_));
  });
}

}  // namespace ringlet::job
