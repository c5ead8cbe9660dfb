#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "tools/job/job_options.hpp"
#include "tools/job/job_restarts.hpp"
#include "tools/job/job_traces.hpp"
#include "tools/job/message_channel.hpp"

namespace ringlet::job {

/// Runs one job on several machines, which may be this one alone: asks who would, spreads the ranks, has them started, and ends all when
/// one fails, or in an elastic job has that one started again. Belongs to the loop's thread.
class Job {
 public:
  struct Events {
    std::function<void(const std::string&)> on_notice;                  // a sentence for the user
    std::function<void(const std::vector<RankExit>&)> on_chosen;        // it is known who takes part
    std::function<void(int port)> on_listening{};                       // before any rank is started; may be unset
    std::function<void()> on_started;                                   // all ranks have been started
    std::function<void(const std::vector<RankExit>&)> on_added{};       // all ranks, of which the last ones are new; in an elastic job
    std::function<void(std::size_t machine, const Output&)> on_output;  // to be answered by take_output()
    std::function<void(const TracePiece&)> on_trace{};                  // set where StartRanks asks for traces
    std::function<void()> on_input_taken{};                             // the last input has left; unset: no rank reads any
    std::function<void(const JobResult&)> on_end;                       // once; the job may not be destroyed inside
  };

  /// A machine's number is its place among the candidates. Ranks are given out in this order.
  Job(EventLoop& loop, JobOptions options, std::vector<Candidate> candidates, Events events);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// One of the two is called once for each candidate: with its channel, or with the sentence that says why there is none. `exit_code` is
  /// the job's, where a missing machine ends it.
  void reach(std::size_t machine, std::unique_ptr<MessageChannel> channel);
  void miss(std::size_t machine, const std::string& why, int exit_code = 1);

  /// A machine has come up while the job runs; its ranks join the others. To be followed by reach() or miss().
  std::size_t add_machine(Candidate candidate) { return machines_.add_late(std::move(candidate)); }
  /// Whether further ranks are of use, and how many may be added.
  int wanted_ranks() const;
  /// Whether the machine takes no part any more, and may be added anew: it has not refused.
  bool may_return(std::size_t machine) const { return machines_.may_return(machine); }

  /// As EndPolicy::on_signal(). Where all ranks have ended, SIGINT and SIGTERM give up what has not come of their traces, too.
  void on_signal(int signal_number);
  /// Ends the job. The first cause counts.
  void fail(int exit_code, std::string text);
  /// So many bytes of the stdouts, or stderrs, of this machine have been shown.
  void take_output(std::size_t machine, bool error, std::size_t bytes);
  /// For the rank that reads standard input, once on_started or on_input_taken has come; empty: its end.
  void send_input(std::string_view bytes);

  /// Whether every rank that was started has ended; their output may not have been shown.
  bool ranks_over() const;
  bool stopping() const { return policy_.stopping(); }

 private:
  enum class Stage { asking, opening, started };
  void on_message(std::size_t index, Message message);
  void on(std::size_t index, Offer& offer);
  void on(std::size_t index, const PortBound& opened);
  void on(std::size_t index, const RanksStarted& started);
  void on(std::size_t index, const Failed& failed);
  void on(std::size_t index, const Output& output);
  void on(std::size_t index, const Exit& exit);
  void on(std::size_t index, const Notice& notice);
  void on(std::size_t index, const InputTaken&);
  void on(std::size_t index, const TracePiece& piece);
  void on(std::size_t index, const Membership& membership);
  void on(std::size_t index, const Over&);
  template <class Other>
  void on(std::size_t index, const Other&) {
    on_lost(index, {Errc::protocol_error, "it sent a message that does not belong here"});
  }
  void on_lost(std::size_t index, const Status& status);
  void drop_channel(std::size_t index);
  void tell_progress(const std::string& text) const;
  void choose();
  void miss_unanswered(const std::string& why);
  void wait_for_stragglers();
  void start_late(std::size_t index);
  bool waits_for(const JobMachine& machine) const;
  void seat_ranks(const std::vector<std::size_t>& chosen, const std::vector<int>& ranks);
  void bind_port();
  void ask_to_listen(const std::vector<std::size_t>& machines);
  void make_restarts();
  StartRanks order() const;
  std::string words_of(std::size_t index, const std::string& text) const;
  void on_start_late();
  void stop_all(int signal_number, Duration grace);
  void leave(const std::vector<std::size_t>& machines);
  void finish_if_over();

  EventLoop& loop_;
  const JobOptions options_;
  Events events_;
  JobMachines machines_;
  EndPolicy policy_;
  std::optional<JobRestarts> restarts_;  // of an elastic job
  std::optional<JobTraces> traces_;      // where StartRanks asks for them
  Stage stage_ = Stage::asking;
  std::size_t first_machine_ = 0;  // rank 0's
  std::string coordinator_;
  std::string refusals_;  // of those that were left out
  int refusal_code_ = 1;  // the exit code where they end the job
  bool ended_ = false;
  TimerId timer_ = 0, stragglers_timer_ = 0;
  AliveGuard alive_;
};

}  // namespace ringlet::job
