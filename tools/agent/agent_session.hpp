#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/agent/message_link.hpp"
#include "tools/agent/rank_crew.hpp"

namespace ringlet::agent {

/// What a session asks of its agent. All calls come from the loop's thread.
class Host {
 public:
  virtual ~Host() = default;
  /// What this machine would do.
  virtual Offer offer(const Hail& hail) = 0;
  /// The same question once more, for what is really to be started: a refusal, or the program's path to start in `start`.
  virtual std::optional<Failed> admit(Start& start) = 0;
  virtual std::unique_ptr<RankCrew> make_crew(CrewEvents events) = 0;
  virtual void measure(const Survey& survey, std::function<void(const Surveyed&)> on_done) = 0;
};

/// A job as its machine shows it.
struct JobView {
  std::uint64_t id = 0;
  std::string program, from, peer;  // who asked: what it says of itself, and its address
  int first_rank = 0, ranks = 0, world_size = 0;
};

/// The agent's side of one conversation with `ringlet run`: at most one job. When the link goes, the job's ranks are ended within its
/// grace. Belongs to the loop's thread.
class AgentSession {
 public:
  /// Told to the agent; none runs inside a call that it makes.
  struct Events {
    std::function<void(const JobView&)> on_started;
    /// The job has no process left. `how`: why it ended early, or nothing.
    std::function<void(const JobView&, const std::string& how)> on_ended;
    /// Nothing more will happen; the session may be destroyed.
    std::function<void()> on_over;
  };

  AgentSession(EventLoop& loop, std::unique_ptr<Link> link, Host& host, Events events);
  ~AgentSession();
  AgentSession(const AgentSession&) = delete;
  AgentSession& operator=(const AgentSession&) = delete;

  /// Ends the job and the conversation, as when the link goes.
  void close(const std::string& why);
  /// Ranks that run, or have not ended yet.
  int ranks() const { return running_ ? job_.ranks : 0; }
  const std::optional<std::string>& end_reason() const { return end_reason_; }

 private:
  void on_message(Message message);
  void on(const Hail& hail);
  void on(const Open& open);
  void on(Start start);
  void on(const Credit& credit);
  void on(const Order& order);
  void on(const Probe& probe);
  void on(const Survey& survey);
  template <class Other>
  void on(const Other&) {
    close("it sent a message that does not belong here");
  }
  void make_crew();
  void on_output(Output output);
  void on_crew_over();
  void finish();

  EventLoop& loop_;
  Host& host_;
  Events events_;
  std::unique_ptr<MessageLink> link_;  // none once it has gone
  std::unique_ptr<RankCrew> crew_;
  JobView job_;
  bool surveying_ = false;
  bool hailed_ = false, opened_ = false, running_ = false, over_ = false;
  Duration grace_ = Duration::seconds(5);
  std::size_t output_under_way_ = 0;
  std::optional<std::string> end_reason_;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet::agent
