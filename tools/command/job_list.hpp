#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/agent/agent.hpp"

namespace ringlet::command {

/// "job 0f3a… of attic (10.0.0.2:40123) started: /opt/train/train, ranks 0 to 1 of 4".
std::string event_line(const agent::AgentEvent& event);

/// {"event": "job_started", "job": {...}}, {"event": "job_ended", ..., "reason": ...}, {"event": "refused", ..., "reason": ...}.
nlohmann::ordered_json event_json(const agent::AgentEvent& event);

/// The jobs that run on this machine, as a terminal shows them.
class JobList {
 public:
  void take(const agent::AgentEvent& event);
  /// A line for each job, with the time since when it runs, and one for the last refusal.
  std::vector<std::string> lines() const;

 private:
  struct ShownJob {
    job::JobView view;
    std::string since;  // "14:03:59"
  };
  std::vector<ShownJob> jobs_;
  std::string last_refusal_;
};

}  // namespace ringlet::command
