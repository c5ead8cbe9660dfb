#include "tools/command/run_on_machines.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/command/machine_watch.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/job/message_link.hpp"
#include "tools/launch/launch_report.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;

constexpr DialTimes kDialTimes{Duration::seconds(3), Duration::seconds(5)};

Json milliseconds(const std::optional<Duration>& time) { return time ? Json(time->whole_milliseconds()) : Json(nullptr); }

}  // namespace

MachineRunner::MachineRunner(RunOnMachines options)
    : options_(std::move(options)),
      network_(loop_),
      authenticator_(options_.token),
      dialler_(loop_, network_, authenticator_),
      runner_(loop_, {options_.json, "ringlet run"}),
      start_(loop_.now()) {}

MachineRunner::~MachineRunner() = default;

int MachineRunner::run() {
  search_ = std::make_unique<agent::MachineSearch>(loop_, options_.search);
  if (const Status status = search_->start(); !status.ok()) runner_.give_up(1, status.text() + "; choose another port with --port");
  while (!runner_.over() && !search_->over()) loop_.wait();
  if (!runner_.over()) search_over();
  const job::JobResult result = runner_.run();
  times_.ended = loop_.now() - start_;
  const int exit_code = launch::report("run", result, options_.quiet);
  if (options_.json) tell_in_json(result);
  return exit_code;
}

void MachineRunner::search_over() {
  const std::optional<std::string> lack = search_->find_lack();
  const auto machines = search_->machines();
  times_.found = loop_.now() - start_;
  search_.reset();
  if (lack) return runner_.give_up(kNobodyFound, *lack);
  start_job(machines);
  for (std::size_t i = 0; i < machines.size(); ++i) reach(i, machines[i], 0, "");
}

/// Dials each of the machine's addresses in turn.
void MachineRunner::reach(std::size_t index, const agent::FoundMachine& machine, std::size_t address, const std::string& why_not) {
  if (address == machine.addresses.size()) return job_->miss(index, fmt::format("{} cannot be reached: {}", machine.name, why_not));
  const auto on_dialled = [this, index, machine, address, why_not](Result<std::unique_ptr<Link>> link) {
    if (link.ok()) return job_->reach(index, std::make_unique<job::MessageLink>(loop_, std::move(link).value(), job::kAgentLimits));
    reach(index, machine, address + 1, why_not.empty() ? link.status().text() : why_not);
  };
  dialler_.dial(machine.addresses[address], kDialTimes, {.kind = LinkRequest::Kind::agent}, on_dialled);
}

void MachineRunner::start_job(const std::vector<agent::FoundMachine>& machines) {
  std::vector<job::Candidate> candidates;
  for (const agent::FoundMachine& machine : machines) {
    const auto own = options_.programs.find(machine.name);
    job::Candidate& candidate = candidates.emplace_back();
    candidate.name = machine.name;
    candidate.program = own == options_.programs.end() ? options_.program : own->second;
    candidate.meeting_host = machine.meeting_host;
    candidate.directory = options_.directory;
  }
  launch::JobRunner::Hooks hooks;
  hooks.on_chosen = [this] { times_.connected = loop_.now() - start_; };
  hooks.on_started = [this] { times_.started = loop_.now() - start_; };
  job_ = &runner_.start(options_.job, std::move(candidates), std::move(hooks));
}

void MachineRunner::tell_in_json(const job::JobResult& result) const {
  Json json = launch::to_json(result, "machine");
  for (std::size_t i = 0; i < result.ranks.size(); ++i) json["ranks"][i]["lost"] = result.ranks[i].lost;
  json["error"] = result.error;
  json["message"] = result.message;
  json["milliseconds"] = {{"found", milliseconds(times_.found)},
                          {"connected", milliseconds(times_.connected)},
                          {"started", milliseconds(times_.started)},
                          {"ended", milliseconds(times_.ended)}};
  print_json(json);
}

}  // namespace ringlet::command
