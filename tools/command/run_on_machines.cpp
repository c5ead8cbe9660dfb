#include "tools/command/run_on_machines.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/command/machine_watch.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;

constexpr DialTimes kDialTimes{Duration::seconds(3), Duration::seconds(5)};

bool is_ignored(int signal_number) {
  struct sigaction action{};
  return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json milliseconds(const std::optional<Duration>& time) { return time ? Json(time->whole_milliseconds()) : Json(nullptr); }

}  // namespace

MachineRunner::MachineRunner(RunOnMachines options)
    : options_(std::move(options)),
      network_(loop_),
      authenticator_(options_.token),
      dialler_(loop_, network_, authenticator_),
      output_(loop_.uv(), {.prefix = options_.prefix, .stdout_to_stderr = options_.json},
              {.on_taken =
                   [this](std::size_t machine, std::size_t bytes) {
                     if (job_) job_->take_output(machine, bytes);
                   },
               .on_lost =
                   [this](int error) {
                     loop_.defer([this, error] {
                       if (!job_ || job_over_) return end_if_written();
                       if (error == EPIPE)
                         job_->fail(128 + SIGPIPE, "the reader of the ranks' output went away");
                       else
                         job_->fail(1, fmt::format("cannot write the ranks' output: {}", std::strerror(error)));
                     });
                   },
               .on_idle = [this] { loop_.defer([this] { end_if_written(); }); }}),
      start_(loop_.now()) {}

MachineRunner::~MachineRunner() = default;

int MachineRunner::run() {
  ::signal(SIGPIPE, SIG_IGN);
  watch_signals();
  search_ = std::make_unique<agent::MachineSearch>(loop_, options_.search);
  if (const Status status = search_->start(); !status.ok()) {
    give_up(1, status.text() + "; choose another port with --port");
    search_.reset();
  }
  while (!over_) {
    loop_.wait();
    if (search_ && search_->over()) search_over();
  }
  if (options_.json) fmt::print("{}\n", to_json());
  return result_.exit_code;
}

void MachineRunner::watch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    // Who started this with nohup or in the background wants it to outlive these.
    if ((number == SIGHUP || number == SIGINT || number == SIGQUIT) && is_ignored(number)) continue;
    signals_.push_back(std::make_unique<launch::UvSignal>(
        loop_.uv(), number, [this](int received) { loop_.defer([this, received] { on_signal(received); }); }));
  }
}

void MachineRunner::on_signal(int signal_number) {
  const bool ends = signal_number == SIGINT || signal_number == SIGTERM;
  if (signal_number == SIGINT) ++interrupts_;
  // Only a reader that takes no output can have kept this.
  if (ends && (job_over_ || interrupts_ > 1 || (job_ && job_->ranks_over()))) output_.discard();
  if (job_ && !job_over_) return job_->on_signal(signal_number);
  if (ends && !job_over_) give_up(128 + signal_number, "");
  end_if_written();
}

void MachineRunner::search_over() {
  const std::optional<std::string> lack = search_->find_lack();
  const auto machines = search_->machines();
  times_.found = loop_.now() - start_;
  search_.reset();
  if (lack) return give_up(kNobodyFound, *lack);
  make_job(machines);
  for (std::size_t i = 0; i < machines.size(); ++i) reach(i, machines[i], 0, "");
}

/// By each of its addresses in turn.
void MachineRunner::reach(std::size_t index, const agent::FoundMachine& machine, std::size_t address, const std::string& why_not) {
  if (address == machine.addresses.size()) return job_->miss(index, fmt::format("{} cannot be reached: {}", machine.name, why_not));
  const auto on_dialled = [this, index, machine, address, why_not](Result<std::unique_ptr<Link>> link) {
    if (link.ok()) return job_->reach(index, std::move(link).value());
    reach(index, machine, address + 1, why_not.empty() ? link.status().text() : why_not);
  };
  dialler_.dial(machine.addresses[address], kDialTimes, {.kind = LinkRequest::Kind::agent}, on_dialled);
}

void MachineRunner::make_job(const std::vector<agent::FoundMachine>& machines) {
  std::vector<agent::Candidate> candidates;
  for (const agent::FoundMachine& machine : machines) {
    const auto own =
        std::find_if(options_.programs.begin(), options_.programs.end(), [&](const auto& one) { return one.first == machine.name; });
    candidates.push_back({machine.name, own == options_.programs.end() ? options_.program : own->second, machine.meeting_host});
  }
  agent::RunJob::Events events;
  events.on_notice = [this](const std::string& text) { output_.say(text); };
  events.on_chosen = [this](int ranks) {
    times_.connected = loop_.now() - start_;
    output_.set_world_size(ranks);
  };
  events.on_started = [this](const std::vector<agent::RunRank>&) { times_.started = loop_.now() - start_; };
  events.on_output = [this](std::size_t machine, const agent::Output& output) {
    output_.show(machine, job_->machine_name(machine), output);
  };
  events.on_end = [this](const agent::RunResult& result) { on_end(result); };
  job_ = std::make_unique<agent::RunJob>(loop_, options_.job, std::move(candidates), std::move(events));
}

void MachineRunner::on_end(const agent::RunResult& result) {
  result_ = result;
  times_.ended = loop_.now() - start_;
  job_over_ = true;
  output_.finish();
  if (!result_.error.empty()) output_.say(result_.error);
  if (!result_.message.empty() && !options_.quiet) output_.say(result_.message);
  end_if_written();
}

void MachineRunner::give_up(int exit_code, const std::string& why) {
  search_.reset();
  result_.exit_code = exit_code;
  result_.error = why;
  job_over_ = true;
  if (!why.empty()) output_.say(why);
  end_if_written();
}

void MachineRunner::end_if_written() {
  if (job_over_ && output_.idle()) over_ = true;
}

std::string MachineRunner::to_json() const {
  Json ranks = Json::array();
  for (const agent::RunRank& rank : result_.ranks)
    ranks.push_back({{"rank", rank.rank},
                     {"machine", rank.machine},
                     {"pid", rank.pid != 0 ? Json(rank.pid) : Json(nullptr)},
                     {"code", or_null(rank.code)},
                     {"signal", or_null(rank.signal)},
                     {"stopped", rank.stopped},
                     {"lost", rank.lost}});
  const Json times{{"found", milliseconds(times_.found)},
                   {"connected", milliseconds(times_.connected)},
                   {"started", milliseconds(times_.started)},
                   {"ended", milliseconds(times_.ended)}};
  return Json{{"exit_code", result_.exit_code},
              {"first_failed", or_null(result_.first_failed)},
              {"error", result_.error},
              {"message", result_.message},
              {"ranks", ranks},
              {"milliseconds", times}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ringlet::command
