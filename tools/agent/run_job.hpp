#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/agent/assignment.hpp"
#include "tools/agent/message_link.hpp"

namespace ringlet::agent {

/// What to run, and how its end is handled.
struct RunOptions {
  std::string version, group, from;
  std::uint64_t job = 0;
  std::string token;  // of the job alone
  std::vector<std::string> arguments;
  std::vector<Variable> environment;
  std::string directory;  // empty: where the agent was started
  RankWish wish;
  int at_least = 1;                        // machines
  bool every_machine = false;              // a machine that does not take part is a failure
  bool prefix = true;                      // "[rank machine] " stands before each line
  std::uint32_t terminal_columns = 0;      // 0: no terminal shows the output
  Duration linger = Duration::seconds(2);  // from the first failure to SIGTERM for the other ranks
  Duration grace = Duration::seconds(5);   // from SIGTERM to SIGKILL
};

/// A machine that may take part.
struct Candidate {
  std::string name;
  std::string program;       // absolute path there
  std::string meeting_host;  // its address as the other machines reach it
};

/// How one rank ended. `code` or `signal` is set once it has ended.
struct RunRank {
  int rank = 0;
  std::string machine;
  std::uint32_t pid = 0;
  std::optional<int> code, signal;
  bool stopped = false;  // still ran when it was told to end
  bool lost = false;     // its machine was lost
};

struct RunResult {
  /// As `ringlet launch` has it: 0 if all ranks exited with 0; the first failed rank's code, or 128 + signal; 126 or 127 if the program
  /// cannot be run or nobody allows it; 128 + signal after SIGINT or SIGTERM; 1 where a machine was lost, and otherwise.
  int exit_code = 0;
  std::optional<int> first_failed;
  std::vector<RunRank> ranks;
  std::string error;    // why the job could not be carried out
  std::string message;  // otherwise how it ended; empty if all went well
};

/// Runs one job on several agents: asks who would, spreads the ranks, starts them, and ends all when one fails. Belongs to the loop's
/// thread.
class RunJob {
 public:
  struct Events {
    std::function<void(const std::string&)> on_notice;                  // a sentence for the user
    std::function<void(int ranks)> on_chosen;                           // it is known who takes part
    std::function<void(const std::vector<RunRank>&)> on_started;        // all ranks have been started
    std::function<void(std::size_t machine, const Output&)> on_output;  // to be answered by take_output()
    std::function<void(const RunResult&)> on_end;                       // once; the job may not be destroyed inside
  };

  /// Machines are told of by their place among the candidates, and get their ranks in this order.
  RunJob(EventLoop& loop, RunOptions options, std::vector<Candidate> candidates, Events events);
  ~RunJob();
  RunJob(const RunJob&) = delete;
  RunJob& operator=(const RunJob&) = delete;

  /// For each candidate one of the two, once: the job has its link, or there is none.
  void reach(std::size_t machine, std::unique_ptr<Link> link);
  void miss(std::size_t machine, const std::string& why);

  /// SIGINT and SIGTERM end the job, the second SIGINT at once; others are passed on.
  void on_signal(int signal_number);
  /// The user's side takes no more output.
  void fail(int exit_code, std::string text);
  /// So much of this machine's output has been shown.
  void take_output(std::size_t machine, std::size_t bytes);

  /// Whether every rank that was started has ended; their output may not have been shown.
  bool ranks_over() const;
  const std::string& machine_name(std::size_t machine) const { return machines_[machine].candidate.name; }

 private:
  enum class Stage { asking, opening, running, lingering, stopping };
  /// From the question who would run the program, or the order to start it, to the answers.
  static constexpr Duration kAnswerTime = Duration::seconds(10);
  struct Machine {
    Candidate candidate;
    std::unique_ptr<MessageLink> link;  // none: not reached, takes no part, or is lost
    bool answered = false;              // takes part or does not
    std::optional<Offer> offer;
    int first_rank = 0, ranks = 0;
    bool started = false;
    bool over = false;  // nothing runs there, or nobody knows
  };

  void on_message(std::size_t index, Message message);
  void on(std::size_t index, Offer& offer);
  void on(std::size_t index, const Opened& opened);
  void on(std::size_t index, const Started& started);
  void on(std::size_t index, const Failed& failed);
  void on(std::size_t index, const Output& output);
  void on(std::size_t index, const Exit& exit);
  void on(std::size_t index, const Over&);
  template <class Other>
  void on(std::size_t index, const Other&) {
    on_lost(index, {Errc::protocol_error, "it sent a message that does not belong here"});
  }
  void on_lost(std::size_t index, const Status& status);
  void drop_link(std::size_t index);
  void choose();
  std::uint32_t columns_for(const Machine& machine) const;
  void on_start_timeout();
  void note_failure(int rank);
  void fail_with(int exit_code, const std::string& text);
  void linger();
  void stop_all(int signal_number, Duration grace);
  void finish_if_over();
  RunResult make_result() const;
  std::string describe_failure() const;
  std::string list_ranks(bool (*which)(const RunRank&), const char* before) const;
  RunRank* find_rank(std::size_t index, std::uint32_t rank);

  EventLoop& loop_;
  const RunOptions options_;
  Events events_;
  std::deque<Machine> machines_;
  std::vector<RunRank> ranks_;
  Stage stage_ = Stage::asking;
  std::string refusals_;  // of those that were left out
  int refusal_code_ = 0;
  std::optional<int> first_failed_;
  std::optional<std::string> lost_machine_;
  std::string lost_why_;
  std::optional<int> stop_signal_;
  std::string error_;
  int error_code_ = 0;
  int interrupts_ = 0;
  bool starts_sent_ = false;  // agents have been told to start ranks, and will tell when all is over
  bool ended_ = false;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet::agent
