#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/agent/agent.hpp"
#include "tools/command/job_list.hpp"
#include "tools/command/machine_list.hpp"
#include "tools/command/service_advert.hpp"
#include "tools/datagrams/uv_datagrams.hpp"
#include "tools/discovery/discovery.hpp"

namespace ringlet::command {

/// Exit code where nobody was found.
inline constexpr int kNobodyFound = 3;

struct WatchOptions {
  std::string teller;  // before what is told on stderr: "ringlet discover"
  UvDatagramsOptions datagrams{};
  std::optional<discovery::Profile> profile{};  // what to announce; nothing: only to look
  std::optional<std::string> group{};           // whose machines to show; nothing: all
  std::optional<Duration> once{};               // look for so long, then print what there is; nothing: go on until a signal
  bool json = false;
  std::optional<agent::AgentOptions> agent{};  // to start programs for others, too; only where there is a profile
  bool dns_sd = false;                         // tell the system's DNS-SD responder of the agent
};

/// Discovery until a signal or the end of the time, and what it finds on stdout: on a terminal a table that follows, else a line for each
/// change, and of the jobs that the agent runs; after `once` the table, or one JSON object.
class MachineWatch {
 public:
  explicit MachineWatch(WatchOptions options);
  ~MachineWatch();
  /// Returns the exit code.
  int run();

 private:
  void on_agent_event(const agent::AgentEvent& event);
  std::unique_ptr<agent::Agent> make_agent();
  void close_agent();
  void on_change(discovery::Change change, const discovery::Machine& machine);
  bool shows(const discovery::Machine& machine) const;
  Machines machines() const;
  void tell_start() const;
  std::unique_ptr<ServiceAdvert> make_advert();
  void draw_soon(Duration delay);
  void draw();
  int print_all() const;
  void explain_nobody() const;
  std::string interface_names() const;

  WatchOptions options_;
  UvLoop loop_;
  UvDatagrams datagrams_;
  std::unique_ptr<agent::Agent> agent_;
  Status agent_status_;
  JobList jobs_;
  discovery::Discovery discovery_;
  const bool terminal_;
  const bool colours_;
  std::size_t drawn_lines_ = 0;
  TimerId draw_timer_ = 0;
  Instant next_draw_{};
};

}  // namespace ringlet::command
