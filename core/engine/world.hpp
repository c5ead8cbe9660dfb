#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/deadline_watch.hpp"
#include "core/engine/delay_watch.hpp"
#include "core/engine/group_table.hpp"
#include "core/engine/heartbeats.hpp"
#include "core/engine/options.hpp"
#include "core/engine/peers.hpp"
#include "core/engine/split.hpp"
#include "core/engine/surveys.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// What a rank tells others of its process.
struct Identity {
  std::string host, program;
  std::uint32_t pid = 0;
};

/// All ranks of a program, seen from one of them: a session with every other rank, the groups that use them, the watch over time.
/// Belongs to the loop's thread. Fails as a whole and once: then every operation of every group, pending or new, ends with that status.
class World final : private SessionOwner, private GroupHost {
 public:
  using ControlHandler = std::function<void(int rank, const wire::ControlMessage&)>;

  World(EventLoop& loop, const WorldOptions& options);
  ~World();

  /// Takes over the session with a rank; frames that come from now on are this world's.
  void adopt(std::unique_ptr<Session> session, int rank);
  /// The same for an authenticated link that carries nothing yet.
  void adopt(std::unique_ptr<Link> link, int rank);
  /// The same for a rank that has one already, over which nothing of a group has been sent: that one is given back, to be taken leave of.
  std::unique_ptr<Session> replace(std::unique_ptr<Session> session, int rank);
  /// What was found out about the way to a rank, for link_with().
  void set_path(int rank, const wire::Path& path, bool dialled) { peers_.set_path(rank, path, dialled); }
  /// Of another rank, with which there is a session.
  LinkReport link_with(int rank) const { return peers_.link_with(rank); }
  bool has_session(int rank) const { return peers_.has_session(rank); }
  /// Control messages other than Abort go here while the ranks still meet.
  void set_control_handler(ControlHandler handler) { control_handler_ = std::move(handler); }
  /// Runs once if the world fails.
  void set_failure_handler(std::function<void(const Status&)> handler) { failure_handler_ = std::move(handler); }
  void send_control(int rank, const wire::ControlMessage& message) override;
  /// Hears of operations that take longer than `WorldOptions::warn_after`.
  void set_delay_handler(DelayHandler handler) { delays_.set_handler(std::move(handler)); }
  void set_identity(Identity identity) { identity_ = std::move(identity); }
  /// What this rank does and has done.
  wire::RankState state() const { return state(options_.rank, {}); }
  /// Asks all other ranks what they do; `done` runs once, from the loop, within a second, or never where the world is closed first.
  /// False: too many ask already, or the world has failed.
  bool survey(Surveys::Done done);
  /// What people know the rank by; statuses that blame it say so.
  void set_rank_name(int rank, std::string name) { peers_.set_name(rank, std::move(name)); }
  const std::string& rank_name(int rank) const override { return peers_.name(rank); }

  /// What the ranks have agreed on while they met, for all groups. Before the first operation.
  void set_placement(const Placement& placement, const AlgorithmLimits& limits);
  /// The group of all ranks; it is there from the start and until it is left.
  GroupEngine& group() { return *group_; }
  /// Forms groups out of `parent` (split.hpp).
  void split(GroupEngine& parent, std::uint16_t stream, SplitTask task);
  /// Takes leave of a group, in which no operation may be pending, and destroys it. The world goes on, even without its own group.
  void leave(GroupEngine& group);

  /// Ends the world for everyone, with this reason. The first call counts.
  void fail(const Status& status) override;
  /// Leaves the world: takes leave of every rank, waits at most the close timeout until all is sent, then closes the links. Pending
  /// operations end as `cancelled`. `on_closed` runs once, from the loop.
  void close(std::function<void()> on_closed);

  const Status& failure() const override { return failure_; }
  bool busy() const { return !groups_.idle(); }
  const WorldOptions& options() const override { return options_; }

 private:
  class ControlSink;

  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;
  Session& session_with(int rank) override { return peers_.session(rank); }
  EventLoop& loop() override { return loop_; }
  bool has_left_world(int rank) const override { return peers_.has_left(rank); }

  void on_control(int peer, ConstBytes payload);
  void on_question(int peer, const wire::StateQuestion& question);
  wire::RankState state(int peer, const wire::StateQuestion& question) const;
  void on_goodbye(int peer);
  void on_relayed_link_lost(int peer, const Status& status);
  /// Tells a peer why the world has failed, as the last thing.
  void send_abort(Session& session);
  void schedule_tick();
  void tick();
  void finish_closing_if_done();
  void finish_closing();
  void end_operations(const Status& status);

  EventLoop& loop_;
  WorldOptions options_;
  Peers peers_;
  std::vector<std::unique_ptr<ControlSink>> control_sinks_;
  GroupTable groups_;  // goes before the sessions, which may hold its frame sources
  GroupEngine* group_ = nullptr;
  Heartbeats heartbeats_;
  Surveys surveys_;
  DeadlineWatch deadlines_;
  DelayWatch delays_;
  Identity identity_;
  ControlHandler control_handler_;
  std::function<void(const Status&)> failure_handler_;
  std::function<void()> on_closed_;
  Status failure_;
  bool closing_ = false;
  Instant close_deadline_{};
  TimerId tick_timer_ = 0;
  TimerId word_timer_ = 0;  // a relayed link broke, and who is to blame has not been heard
};

}  // namespace ringlet
