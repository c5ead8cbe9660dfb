#include "tools/agent/run_job.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace ringlet::agent {

namespace {

std::string address_text(const std::string& host, std::uint32_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::uint32_t milliseconds(Duration duration) { return static_cast<std::uint32_t>(duration.whole_milliseconds()); }

}  // namespace

RunJob::RunJob(EventLoop& loop, RunOptions options, std::vector<Candidate> candidates, Events events)
    : loop_(loop), options_(std::move(options)), events_(std::move(events)), alive_(std::make_shared<bool>(true)) {
  for (Candidate& candidate : candidates) machines_.emplace_back().candidate = std::move(candidate);
}

RunJob::~RunJob() {
  *alive_ = false;
  loop_.cancel(timer_);
}

void RunJob::on_message(std::size_t index, Message message) {
  if (ended_) return;
  std::visit([&](auto& value) { on(index, value); }, message);
}

void RunJob::on(std::size_t index, const Opened& opened) {
  const Machine& first = machines_[index];
  if (stage_ != Stage::opening || first.ranks == 0 || first.first_rank != 0)
    return on_lost(index, {Errc::protocol_error, "it opened a place to meet that nobody asked for"});
  stage_ = Stage::running;
  starts_sent_ = true;
  const std::string coordinator = address_text(first.candidate.meeting_host, opened.port);
  for (Machine& machine : machines_) {
    if (!machine.link) continue;
    Start start{options_.job,
                static_cast<std::uint32_t>(machine.first_rank),
                static_cast<std::uint32_t>(machine.ranks),
                static_cast<std::uint32_t>(ranks_.size()),
                coordinator,
                options_.token,
                machine.candidate.program};
    start.arguments = options_.arguments;
    start.environment = options_.environment;
    start.directory = options_.directory;
    start.grace_ms = milliseconds(options_.grace);
    start.terminal_columns = columns_for(machine);
    machine.link->send(start);
  }
}

/// What is left of the terminal's width beside the prefix.
std::uint32_t RunJob::columns_for(const Machine& machine) const {
  if (!options_.prefix || options_.terminal_columns == 0) return options_.terminal_columns;
  const std::size_t prefix = fmt::formatted_size("[{} {}] ", ranks_.size() - 1, machine.candidate.name);
  return options_.terminal_columns > prefix ? options_.terminal_columns - static_cast<std::uint32_t>(prefix) : 1;
}

void RunJob::on(std::size_t index, const Started& started) {
  Machine& machine = machines_[index];
  if (machine.started || static_cast<int>(started.pids.size()) != machine.ranks || !starts_sent_)
    return on_lost(index, {Errc::protocol_error, "it started other ranks than it was asked to"});
  machine.started = true;
  for (int i = 0; i < machine.ranks; ++i)
    ranks_[static_cast<std::size_t>(machine.first_rank + i)].pid = started.pids[static_cast<std::size_t>(i)];
  const bool all = std::all_of(machines_.begin(), machines_.end(), [](const Machine& one) { return one.started || one.ranks == 0; });
  if (!all) return;
  if (stage_ == Stage::running) loop_.cancel(timer_);
  events_.on_started(ranks_);
}

void RunJob::on(std::size_t index, const Failed& failed) {
  fail_with(failed.exit_code == 0 ? 1 : static_cast<int>(failed.exit_code),
            fmt::format("{}: {}", machines_[index].candidate.name, failed.text));
}

void RunJob::on(std::size_t index, const Output& output) {
  if (find_rank(index, output.rank) == nullptr) return on_lost(index, {Errc::protocol_error, "it sent output of a rank that is not its"});
  events_.on_output(index, output);
}

void RunJob::on(std::size_t index, const Exit& exit) {
  RunRank* rank = find_rank(index, exit.rank);
  if (rank == nullptr || rank->code || rank->signal)
    return on_lost(index, {Errc::protocol_error, "it told the end of a rank that is not its, or has ended"});
  if (exit.signal != 0)
    rank->signal = static_cast<int>(exit.signal);
  else
    rank->code = static_cast<int>(exit.code);
  rank->stopped = exit.stopped;
  if (rank->code == 0 || rank->stopped) return;
  if (stage_ == Stage::running) note_failure(rank->rank);
  // Who loses a peer may have exited, and been noted, before it is told that the peer was killed; and nobody is killed because a peer was.
  const bool killed = rank->signal == SIGKILL && stage_ == Stage::lingering && error_.empty() && !lost_machine_;
  if (killed && ranks_[static_cast<std::size_t>(*first_failed_)].code) first_failed_ = rank->rank;
}

void RunJob::note_failure(int rank) {
  first_failed_ = rank;
  linger();
}

void RunJob::linger() {
  stage_ = Stage::lingering;
  loop_.cancel(timer_);
  timer_ = loop_.after(options_.linger, [this] { stop_all(SIGTERM, options_.grace); });
}

void RunJob::on(std::size_t index, const Over&) {
  machines_[index].over = true;
  finish_if_over();
}

void RunJob::on_lost(std::size_t index, const Status& status) {
  Machine& machine = machines_[index];
  if (!machine.link || ended_) return;
  const std::string what = fmt::format("lost {} ({}): {}", machine.candidate.name, machine.link->peer_name(), status.text());
  if (stage_ == Stage::asking) return miss(index, what);
  drop_link(index);
  if (machine.over) return;
  machine.over = true;
  for (int i = 0; i < machine.ranks; ++i) {
    RunRank& rank = ranks_[static_cast<std::size_t>(machine.first_rank + i)];
    rank.lost = !rank.code && !rank.signal;
  }
  // As with a rank that was killed, others may have failed of it before it was noticed.
  const bool first = !first_failed_ || ranks_[static_cast<std::size_t>(*first_failed_)].code;
  if (!stop_signal_ && error_.empty() && !lost_machine_ && first && stage_ <= Stage::lingering) {
    lost_machine_ = machine.candidate.name;
    lost_why_ = what;
    first_failed_.reset();
    if (!starts_sent_) return stop_all(SIGTERM, {});
    if (stage_ != Stage::lingering) linger();
  }
  finish_if_over();
}

void RunJob::on_signal(int signal_number) {
  if (ended_) return;
  if (signal_number != SIGINT && signal_number != SIGTERM) {
    for (Machine& machine : machines_)
      if (machine.link && starts_sent_) machine.link->send(Order{static_cast<std::uint32_t>(signal_number), false, 0});
    return;
  }
  if (signal_number == SIGINT) ++interrupts_;
  if (error_.empty() && !first_failed_ && !lost_machine_ && !stop_signal_) stop_signal_ = signal_number;
  stop_all(signal_number, interrupts_ > 1 ? Duration{} : options_.grace);
}

void RunJob::fail(int exit_code, std::string text) { fail_with(exit_code, text); }

void RunJob::fail_with(int exit_code, const std::string& text) {
  if (ended_) return;
  if (error_.empty() && !first_failed_ && !lost_machine_ && !stop_signal_) {
    error_code_ = exit_code;
    error_ = text;
  }
  stop_all(SIGTERM, options_.grace);
}

void RunJob::stop_all(int signal_number, Duration grace) {
  stage_ = Stage::stopping;
  loop_.cancel(timer_);
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    Machine& machine = machines_[i];
    if (!machine.link || machine.over) continue;
    if (starts_sent_) {
      machine.link->send(Order{static_cast<std::uint32_t>(signal_number), true, milliseconds(grace)});
    } else {
      machine.over = true;
      drop_link(i);
    }
  }
  finish_if_over();
}

void RunJob::take_output(std::size_t machine, std::size_t bytes) {
  if (machines_[machine].link && bytes > 0) machines_[machine].link->send(Credit{static_cast<std::uint32_t>(bytes)});
}

bool RunJob::ranks_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RunRank& rank) { return rank.code || rank.signal || rank.lost; });
}

void RunJob::on_start_timeout() {
  std::string late;
  for (const Machine& machine : machines_)
    if (machine.ranks > 0 && !machine.started && (stage_ == Stage::running || machine.first_rank == 0))
      late += (late.empty() ? "" : ", ") + machine.candidate.name;
  fail_with(1, fmt::format("{} did not start the ranks within {} s", late, kAnswerTime.whole_milliseconds() / 1000));
}

RunRank* RunJob::find_rank(std::size_t index, std::uint32_t rank) {
  const Machine& machine = machines_[index];
  const auto first = static_cast<std::uint32_t>(machine.first_rank);
  if (rank < first || rank >= first + static_cast<std::uint32_t>(machine.ranks)) return nullptr;
  return &ranks_[rank];
}

void RunJob::finish_if_over() {
  const auto over = [](const Machine& machine) { return machine.over || (!machine.link && machine.ranks == 0); };
  if (ended_ || !std::all_of(machines_.begin(), machines_.end(), over)) return;
  ended_ = true;
  loop_.cancel(timer_);
  loop_.defer([this, alive = alive_] {
    if (!*alive) return;
    for (Machine& machine : machines_) machine.link.reset();
    events_.on_end(make_result());
  });
}

}  // namespace ringlet::agent
