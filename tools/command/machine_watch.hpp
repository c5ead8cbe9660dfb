#pragma once

#include <functional>
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

/// The exit code if no machine was found.
inline constexpr int kNobodyFound = 3;

struct WatchOptions {
  std::string message_prefix;  // starts each line on stderr, for example "ringlet discover"
  UvDatagramsOptions datagrams{};
  std::optional<discovery::Profile> profile{};  // announced to others; unset to look only
  std::optional<std::string> group{};           // show only machines of this group; unset for all
  std::optional<Duration> once{};               // print what was found after this time and end; unset to run until a signal
  bool json = false;
  std::optional<agent::AgentOptions> agent{};  // starts programs for others too; needs a profile
  bool dns_sd = false;                         // whether to advertise the agent by the system's DNS-SD responder
};

/// Runs discovery until a signal or the end of the time, and prints its findings on stdout. On a terminal this is a table that is redrawn,
/// elsewhere a line for each change. Both also show the jobs that the agent runs. With `once` it prints the table, or one JSON object, at
/// the end. Where its lines cannot be written any more it ends, too; with an agent, which takes no new jobs then, not before those that
/// run, unless a signal comes.
class MachineWatch {
 public:
  explicit MachineWatch(WatchOptions options);
  ~MachineWatch();
  /// Returns the exit code. Throws if it cannot listen.
  int run();

 private:
  void on_agent_event(const agent::AgentEvent& event);
  std::unique_ptr<agent::Agent> make_agent();
  void finish_jobs(const std::function<bool()>& is_over);
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
