#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rendezvous/dialler.hpp"
#include "tools/agent/machine_search.hpp"
#include "tools/agent/run_job.hpp"
#include "tools/agent/run_output.hpp"
#include "tools/launch/uv_handles.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::command {

struct RunOnMachines {
  agent::SearchOptions search;
  agent::RunOptions job;
  std::string token;  // the group's
  std::string program;
  std::vector<std::pair<std::string, std::string>> programs;  // by machine, where it is not `program`
  bool prefix = true;
  bool json = false;
  bool quiet = false;
};

/// `ringlet run`: finds the machines, reaches them, and has them run the job. Belongs to the main thread.
class MachineRunner {
 public:
  explicit MachineRunner(RunOnMachines options);
  ~MachineRunner();

  /// To its end; returns the exit code. Writes the ranks' output and what there is to say.
  int run();

 private:
  /// When what had happened, for --json; from the start.
  struct Times {
    std::optional<Duration> found, connected, started, ended;
  };

  void watch_signals();
  void on_signal(int signal_number);
  void search_over();
  void reach(std::size_t index, const agent::FoundMachine& machine, std::size_t address, const std::string& why_not);
  void make_job(const std::vector<agent::FoundMachine>& machines);
  void on_end(const agent::RunResult& result);
  void end_if_written();
  void give_up(int exit_code, const std::string& why);
  std::string to_json() const;

  RunOnMachines options_;
  UvLoop loop_;
  UvNetwork network_;
  TokenAuthenticator authenticator_;
  Dialler dialler_;
  agent::RunOutput output_;
  std::vector<std::unique_ptr<launch::UvSignal>> signals_;
  std::unique_ptr<agent::MachineSearch> search_;
  std::unique_ptr<agent::RunJob> job_;
  agent::RunResult result_;
  bool job_over_ = false, over_ = false;
  int interrupts_ = 0;
  Instant start_;
  Times times_;
};

}  // namespace ringlet::command
