#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/launch/course.hpp"
#include "tools/launch/hosts/deputy_link.hpp"
#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/hosts/input_feed.hpp"
#include "tools/launch/hosts/ssh_command.hpp"
#include "tools/launch/rank_output.hpp"

namespace ringlet::launch {

/// Where the ranks of a launch on several machines run and meet.
struct HostsPlan {
  std::vector<Host> hosts;                                       // rank 0 is on the first; each has its number of slots, or one
  std::vector<std::pair<std::string, std::string>> environment;  // of all ranks; a host's own and the options' come after it, and hold
  SshOptions ssh;
  std::optional<std::string> coordinator_host;  // how the others reach rank 0's machine; unset: found out
  int coordinator_port = 0;                     // 0: any that is free there
};

/// Runs a program as the ranks of one group on several machines, until none of their processes is left. First every host is reached, then
/// all are told what to start, and only when all can do it the ranks start. Failures and signals are dealt with as `Launcher` does. A host
/// that is lost, or says nothing when its ranks are to end, counts as the failure of its ranks. Everything secret goes through ssh's
/// standard input.
class HostsLauncher {
 public:
  /// `options.world_size` is counted from the plan.
  HostsLauncher(LaunchOptions options, HostsPlan plan);
  ~HostsLauncher();

  /// As `Launcher::run`.
  LaunchResult run();

 private:
  struct Far {
    Host host;
    int first_rank = 0;
    int count = 0;
    std::unique_ptr<DeputyLink> link;
    std::optional<Hello> hello;
    std::optional<int> port;  // it is ready
    bool over = false;
    bool heard = false;  // since it was last looked at
    std::string failure;
  };

  void connect();
  void on_message(Far& far, MessageKind kind, std::string_view body);
  void on_running(Far& far, MessageKind kind, std::string_view body);
  void on_end(Far& far);
  void give_up(Far& far, int exit_code, const std::string& why);
  void hand_out_jobs_if_all_answered();
  Job make_job(const Far& far) const;
  std::string meeting_host() const;
  void start_if_all_ready();
  void note_lost(Far& far);
  void expect_end(std::chrono::milliseconds grace);
  void give_up_silent();
  RankExit& exit_of(const Far& far, int rank);
  void stop(int signal_number, std::chrono::milliseconds grace);
  void settle();
  void send_to_all(const std::string& message);

  LaunchOptions options_;
  HostsPlan plan_;
  UvLoop loop_;
  UvTimer patience_timer_{loop_.get()};
  UvTimer alive_timer_{loop_.get()};
  UvTimer silence_timer_{loop_.get()};
  std::optional<Course> course_;
  std::optional<RankOutput> output_;
  std::optional<InputFeed> input_;
  std::vector<std::unique_ptr<Far>> fars_;
  std::vector<RankExit> exits_;  // by rank
  std::chrono::steady_clock::time_point end_expected_at_ = std::chrono::steady_clock::time_point::max();
  bool jobs_sent_ = false;
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace ringlet::launch
