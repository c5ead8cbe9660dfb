#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rendezvous/dialler.hpp"
#include "tools/agent/link_identity.hpp"
#include "tools/agent/machine_search.hpp"
#include "tools/command/job_trace.hpp"
#include "tools/launch/job_runner.hpp"
#include "tools/machines/known_machines.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::command {

struct RunOnMachines {
  agent::SearchOptions search;
  job::JobOptions job;
  std::string token;                                // the group's
  std::optional<agent::LinkIdentity> identity;      // this machine's; always set
  std::optional<machines::KnownMachines> machines;  // of the group; always set
  std::string program;
  std::map<std::string, std::string> programs;    // by machine, where it is not `program`
  std::string directory;                          // empty: where each agent was started
  std::unique_ptr<trace::PartFiles> trace_parts;  // null: no trace is kept
  bool json = false;
  bool quiet = false;
};

/// `ringlet run`: finds the machines, reaches them, and has them run the job. Belongs to the main thread.
class MachineRunner {
 public:
  explicit MachineRunner(RunOnMachines options);
  ~MachineRunner();

  /// To its end; returns the exit code. Writes the ranks' output and the messages for the user.
  int run();

 private:
  /// The moments of each step, for --json; from the start.
  struct Times {
    std::optional<Duration> found, connected, started, ended;
  };

  void search_over();
  std::optional<std::string> look_at_names(const std::vector<agent::FoundMachine>& machines);
  void reach(std::size_t index, const agent::FoundMachine& machine, std::size_t address, const std::string& why_not);
  std::optional<std::string> check_identity(const job::Candidate& candidate, const job::Offer& offer, const LinkBinding& binding);
  void start_job(const std::vector<agent::FoundMachine>& machines);
  job::Candidate make_candidate(const agent::FoundMachine& machine) const;
  void watch_for_others();
  void add_others();
  void tell_in_json(const job::JobResult& result) const;

  RunOnMachines options_;
  UvLoop loop_;
  UvNetwork network_;
  TokenAuthenticator authenticator_;
  Dialler dialler_;
  JobTrace trace_;
  launch::JobRunner runner_;
  std::unique_ptr<agent::MachineSearch> search_;
  job::Job* job_ = nullptr;
  std::map<std::uint64_t, std::size_t> asked_;  // by the instance of its `ringlet up`: a machine's number in the job
  TimerId watch_timer_ = 0;                     // of an elastic job
  Instant start_;
  Times times_;
};

}  // namespace ringlet::command
