#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/alive_guard.hpp"
#include "core/ports/event_loop.hpp"
#include "tools/job/message_channel.hpp"
#include "tools/job/rank_crew.hpp"

namespace ringlet::job {

/// Decides for a session what this machine does. All calls come from the loop's thread.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  /// Whether this machine would run the program, and lets the sender ask for more on the link with this binding.
  virtual Offer offer(const Hail& hail, const LinkBinding& binding) = 0;
  /// The same question once more, for the ranks that are really to be started: a refusal, or `start` as it is to be carried out. `hail` is
  /// the one that it made an offer for.
  virtual std::optional<Failed> admit(StartRanks& start, const Hail& hail) = 0;
  /// And once more before any of these ranks is started again: why they may not be any more. `start` is as it was asked for.
  virtual std::optional<Failed> find_withdrawal(const StartRanks& /*start*/, const Hail& /*hail*/) { return std::nullopt; }
  virtual std::unique_ptr<RankCrew> make_crew(CrewEvents events) = 0;
  /// A port at which ranks of this machine could listen, and that takes connections now; 0: there is none.
  virtual std::uint16_t rank_port() const { return 0; }
  virtual void measure(const PathSurvey& survey, std::function<void(const SurveyedPaths&)> on_done) = 0;
};

/// A job as its machine shows it.
struct JobView {
  std::uint64_t id = 0;
  std::string program, from, peer;  // `from`: the name that the asking machine gives itself; `peer`: its address
  int first_rank = 0, ranks = 0, world_size = 0;
};

/// The machine's side of one conversation with a Job: an agent's with `ringlet run`, a deputy's with `ringlet launch` on another machine,
/// or that of `ringlet launch` with its own ranks. It has at most one job. When the channel goes, the job's ranks are ended within its
/// grace. Belongs to the loop's thread.
class MachineSession {
 public:
  /// Told to the owner; none runs inside a call that it makes.
  struct Events {
    std::function<void(const JobView&)> on_started = [](const JobView&) {};
    /// The job has no process left. `how`: why it ended early, or nothing.
    std::function<void(const JobView&, const std::string& how)> on_ended = [](const JobView&, const std::string&) {};
    /// Nothing more will happen; the session may be destroyed.
    std::function<void()> on_over;
  };

  MachineSession(EventLoop& loop, std::unique_ptr<MessageChannel> channel, SessionHost& host, Events events);
  ~MachineSession();
  MachineSession(const MachineSession&) = delete;
  MachineSession& operator=(const MachineSession&) = delete;

  /// Tells the other end why its job is ended here, ends it, and then the conversation.
  void end(const std::string& why);
  /// Ends the job and the conversation, as when the channel goes.
  void close(const std::string& why);
  /// Ranks that run, or have not ended yet.
  int ranks() const { return running_ ? job_.ranks : 0; }

 private:
  void on_message(Message message);
  void on(Hail hail);
  void on(const BindPort& open);
  void on(StartRanks start);
  void on(const RestartRanks& restart);
  void on(const Credit& credit);
  void on(const Order& order);
  void on(const Input& input);
  void on(const TraceTaken& taken);
  void on(const EchoRequest& request);
  void on(const PathSurvey& survey);
  template <class Other>
  void on(const Other&) {
    close("it sent a message that does not belong here");
  }
  void send(const Message& message);
  void make_crew();
  void on_output(Output output);
  void on_trace(TracePiece piece);
  void on_crew_over();
  void close_after(Duration time);
  void finish();

  EventLoop& loop_;
  SessionHost& host_;
  Events events_;
  std::unique_ptr<MessageChannel> channel_;  // none once it has gone
  std::unique_ptr<RankCrew> crew_;
  JobView job_;
  std::optional<Hail> hail_;
  StartRanks asked_;  // of an elastic job, as it came
  bool surveying_ = false;
  bool refused_ = false;  // nothing but the end may follow
  bool opened_ = false, running_ = false, over_ = false;
  bool elastic_ = false;      // the ranks that run may be started again
  bool wants_input_ = false;  // the last Input has been taken, or none has come
  bool trace_under_way_ = false;
  Duration grace_ = Duration::seconds(5);
  std::array<std::size_t, 2> output_under_way_{};  // of stdouts and of stderrs
  std::optional<std::string> end_reason_;
  TimerId farewell_timer_ = 0;
  AliveGuard alive_;
};

}  // namespace ringlet::job
