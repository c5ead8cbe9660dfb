#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/agent/agent.hpp"

namespace ringlet::command {

/// Returns a line such as "job 0f3a… of attic (10.0.0.2:40123) started: /opt/train/train, ranks 0 to 1 of 4".
std::string event_line(const agent::AgentEvent& event);

/// Returns an object such as {"event": "job_started", "job": {...}}. The event is job_started, job_ended or refused; the last two also have
/// a "reason". The fourth, first_contact, has the machine's name and fingerprint.
nlohmann::ordered_json event_json(const agent::AgentEvent& event);

/// The jobs that run on this machine, for a terminal.
class JobList {
 public:
  void take(const agent::AgentEvent& event);
  /// Returns a line for each job with the time it started, and a line for the last refusal or first contact.
  std::vector<std::string> lines() const;

 private:
  struct ShownJob {
    job::JobView view;
    std::string since;  // "14:03:59"
  };
  std::vector<ShownJob> jobs_;
  std::string last_notice_;
};

}  // namespace ringlet::command
