#include "tools/command/run_on_machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <ringlet/error.hpp>

#include "tools/command/machine_watch.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/job/message_link.hpp"
#include "tools/launch/launch_report.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;

constexpr DialTimes kDialTimes{Duration::seconds(3), Duration::seconds(5)};
constexpr Duration kWatchInterval = Duration::seconds(2);

/// "3 ranks: 2 on attic, 1 on cellar".
std::string describe_places(const std::vector<job::RankExit>& ranks) {
  std::string text;
  for (auto first = ranks.begin(); first != ranks.end();) {
    const auto end = std::find_if(first, ranks.end(), [&](const job::RankExit& rank) { return rank.machine != first->machine; });
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", end - first, first->machine);
    first = end;
  }
  return fmt::format("{} {}: {}", ranks.size(), ranks.size() == 1 ? "rank" : "ranks", text);
}

Json milliseconds(const std::optional<Duration>& time) { return time ? Json(time->whole_milliseconds()) : Json(nullptr); }

}  // namespace

MachineRunner::MachineRunner(RunOnMachines options)
    : options_(std::move(options)),
      network_(loop_),
      authenticator_(options_.token),
      dialler_(loop_, network_, authenticator_),
      trace_("run", std::move(options_.trace_parts)),
      runner_(loop_, {options_.json, "ringlet run"}),
      start_(loop_.now()) {}

MachineRunner::~MachineRunner() { loop_.cancel(watch_timer_); }

int MachineRunner::run() {
  search_ = std::make_unique<agent::MachineSearch>(loop_, options_.search);
  if (const Status status = search_->start(); !status.ok()) runner_.give_up(1, status.text() + "; choose another port with --port");
  while (!runner_.over() && !search_->over()) loop_.wait();
  if (!runner_.over()) search_over();
  const job::JobResult result = runner_.run();
  times_.ended = loop_.now() - start_;
  const int exit_code = launch::report("run", result, options_.quiet && !options_.job.end.elastic);
  trace_.finish(result);
  if (options_.json) tell_in_json(result);
  return exit_code;
}

void MachineRunner::search_over() {
  const std::optional<std::string> lack = search_->find_lack();
  const auto machines = search_->machines();
  if (const auto unanswered = search_->find_unanswered(); unanswered && options_.search.names.empty()) runner_.output().say(*unanswered);
  times_.found = loop_.now() - start_;
  if (!options_.job.most || lack) search_.reset();
  if (lack) return runner_.give_up(kNobodyFound, *lack);
  if (const auto ambiguity = look_at_names(machines)) return runner_.give_up(kNobodyFound, *ambiguity);
  start_job(machines);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    asked_[machines[i].instance] = i;
    reach(i, machines[i], 0, "");
  }
  if (search_) watch_for_others();
}

/// Looks now and then whether a machine has come up that could join the job.
void MachineRunner::watch_for_others() {
  watch_timer_ = loop_.after(kWatchInterval, [this] {
    add_others();
    if (!runner_.over()) watch_for_others();
  });
}

void MachineRunner::add_others() {
  for (const agent::FoundMachine& machine : search_->machines()) {
    if (job_->wanted_ranks() == 0) return;
    const auto asked = asked_.find(machine.instance);
    if (asked != asked_.end() && !job_->may_return(asked->second)) continue;
    const std::size_t index = job_->add_machine(make_candidate(machine));
    asked_[machine.instance] = index;
    // Others are asked when it is known how many ranks this one has.
    return reach(index, machine, 0, "");
  }
}

/// Warns of names that two machines share or that none has. Returns a sentence if the command line names a machine and two have that name.
std::optional<std::string> MachineRunner::look_at_names(const std::vector<agent::FoundMachine>& machines) {
  std::map<std::string, int> count;
  for (const agent::FoundMachine& machine : machines) ++count[machine.name];
  const auto& wanted = options_.search.names;
  for (const auto& [name, carriers] : count) {
    if (carriers == 1) continue;
    const std::string text = fmt::format("{} machines of group {} are called {}; start `ringlet up` on one of them with another --name",
                                         carriers, options_.search.group, name);
    if (options_.programs.count(name) != 0 || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) return text;
    runner_.output().say(text);
  }
  for (const auto& [name, program] : options_.programs)
    if (count.count(name) == 0) runner_.output().say(fmt::format("--program {}={}: no machine of that name takes part", name, program));
  return std::nullopt;
}

/// Dials each of the machine's addresses in turn.
void MachineRunner::reach(std::size_t index, const agent::FoundMachine& machine, std::size_t address, const std::string& why_not) {
  if (address == machine.addresses.size()) return job_->miss(index, fmt::format("{} cannot be reached: {}", machine.name, why_not));
  const auto on_dialled = [this, index, machine, address, why_not](Result<std::unique_ptr<Link>> link) {
    if (link.ok()) return job_->reach(index, std::make_unique<job::MessageLink>(loop_, std::move(link).value(), job::kAgentLimits));
    std::string why = link.status().text();
    if (link.status().code() == Errc::mismatch)
      why += fmt::format("; where neither is set, it is the one saved for group {} (`ringlet pair`)", options_.search.group);
    else if (link.status().code() == Errc::timed_out)
      why += fmt::format("; a firewall may hold TCP back there, `ringlet doctor --group {}` tells what to type", options_.search.group);
    reach(index, machine, address + 1, why_not.empty() ? why : why_not);
  };
  dialler_.dial(machine.addresses[address], kDialTimes, {.kind = LinkRequest::Kind::agent}, on_dialled);
}

std::optional<std::string> MachineRunner::check_identity(const job::Candidate& candidate, const job::Offer& offer,
                                                         const LinkBinding& binding) {
  const std::string& name = candidate.name;
  const auto key = agent::sender_of(offer, options_.search.group, binding);
  if (!key) return fmt::format("{}: what answered did not prove its key on this link; somebody may stand between the two machines", name);
  if (offer.name != name)
    return fmt::format("{}: {} answered in its place, with the key {}; somebody may have redirected the connection", name, offer.name,
                       machines::fingerprint(*key));
  try {
    machines::Acquaintance met = options_.machines->meet_answering(name, *key);
    if (!met.refusal.empty()) return std::move(met.refusal);
    if (met.first)
      runner_.output().say(fmt::format("first contact with {}: its key is {}; `ringlet machines` there shows whether that is so", name,
                                       machines::fingerprint(*key)));
  } catch (const Error& error) {
    return fmt::format("{}: it cannot be told whether it is trusted: {}", name, error.what());
  }
  return std::nullopt;
}

job::Candidate MachineRunner::make_candidate(const agent::FoundMachine& machine) const {
  const auto own = options_.programs.find(machine.name);
  job::Candidate candidate;
  candidate.name = machine.name;
  candidate.program = own == options_.programs.end() ? options_.program : own->second;
  candidate.meeting_host = machine.meeting_host;
  candidate.directory = options_.directory;
  return candidate;
}

void MachineRunner::start_job(const std::vector<agent::FoundMachine>& machines) {
  std::vector<job::Candidate> candidates;
  for (const agent::FoundMachine& machine : machines) candidates.push_back(make_candidate(machine));
  options_.job.introduce = [this](job::Hail& hail, const LinkBinding& binding) { options_.identity->sign(hail, binding); };
  options_.job.check_identity = [this](const job::Candidate& candidate, const job::Offer& offer, const LinkBinding& binding) {
    return check_identity(candidate, offer, binding);
  };
  launch::JobRunner::Hooks hooks;
  hooks.on_chosen = [this](const std::vector<job::RankExit>& ranks) {
    times_.connected = loop_.now() - start_;
    if (!options_.quiet) runner_.output().say(describe_places(ranks));
  };
  hooks.on_trace = trace_.taker();
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
