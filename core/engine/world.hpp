#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/clock_comparison.hpp"
#include "core/engine/create_group.hpp"
#include "core/engine/deadline_watch.hpp"
#include "core/engine/delay_watch.hpp"
#include "core/engine/group_table.hpp"
#include "core/engine/heartbeats.hpp"
#include "core/engine/options.hpp"
#include "core/engine/parts_switch.hpp"
#include "core/engine/peers.hpp"
#include "core/engine/split.hpp"
#include "core/engine/surveys.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// How a rank describes its process to others.
struct Identity {
  std::string host, program;
  std::uint32_t pid = 0;
};

/// Is told how an elastic world ends. All calls come from the loop.
class EpochUser {
 public:
  /// The world has failed: its operations have ended, and nothing but control messages comes from its ranks.
  virtual void on_ended(const Status& why) = 0;
  /// The link with a rank has broken, the rank is silent, or it has left.
  virtual void on_lost(int rank) = 0;
  /// A message by which ranks agree on the next epoch, of this world's epoch or of an earlier one. Called while the session with the rank
  /// delivers it; what the session delivers next is for whoever owns the session then.
  virtual void on_message(int rank, const wire::ControlMessage& message) = 0;

 protected:
  ~EpochUser() = default;
};

/// All ranks of a program as one of them sees them: a session with every other rank, the groups that use these sessions, and the timers. A
/// world fails as a whole and only once; every operation of every group, pending or new, then ends with that status. The links between
/// the native ranks of an elastic world stay open for the next epoch's. Belongs to the loop's thread.
class World final : private SessionOwner, private GroupHost {
 public:
  using ControlHandler = std::function<void(int rank, const wire::ControlMessage&)>;

  World(EventLoop& loop, const WorldOptions& options);
  ~World();

  /// Takes over the session with a rank. The frames that come from now on belong to this world.
  void adopt(std::unique_ptr<Session> session, int rank);
  /// Takes over an authenticated link with a rank, which has carried nothing yet.
  void adopt(std::unique_ptr<Link> link, int rank);
  /// Replaces the session with a rank, over which nothing of a group has been sent. Returns the former session, which the caller has to
  /// close.
  std::unique_ptr<Session> replace(std::unique_ptr<Session> session, int rank);
  /// Sets what is known of the path to a rank, for link_with().
  void set_path(int rank, const wire::Path& path, bool dialled) { peers_.set_path(rank, path, dialled); }
  /// Describes the link with another rank, with which there has to be a session.
  LinkReport link_with(int rank) const { return peers_.link_with(rank); }
  bool has_session(int rank) const { return peers_.has_session(rank); }
  /// While the ranks still meet, the handler is given all control messages except Abort and those about the state of ranks.
  void set_control_handler(ControlHandler handler) { control_handler_ = std::move(handler); }
  /// Of an elastic world. It is called until the world is closed, also with what others have asked before.
  void set_epoch_user(EpochUser& user);
  /// Whether control messages reach the rank, and its own come.
  bool is_linked(int rank) const { return reaches(rank) && !peers_.session(rank).given_up() && !has_left_world(rank); }
  /// Whether a message may still reach the rank, which perhaps is only silent.
  bool reaches(int rank) const { return has_session(rank) && !peers_.session(rank).closed(); }
  /// The rank has begun this epoch: its operations reach this world from now on. Of the first epoch all have begun.
  void hear(int rank) { heard_[static_cast<std::size_t>(rank)] = true; }
  /// Hands over the session with a rank, after the world has failed.
  std::unique_ptr<Session> hand_over(int rank);
  /// The next epoch has begun: the world has no more to do than to close its links with guests, once these had time to learn why.
  void retire();
  /// Of an elastic world that has failed: for the others this rank has ended, and what they decide is without it.
  void say_goodbye();
  /// Closes all links of a world that the others have left, so that close() waits for nobody. Not inside a call of one of them.
  void hang_up() {
    peers_.for_each_session([](Session& session) { session.close(); });
  }
  /// The rank whose call did not fit, where the world has failed by that and nevertheless says that it was lost; else -1.
  int misfit() const { return mismatch_.rank(); }
  /// Nothing is heard from the rank any more.
  void give_up(int rank) { session_with(rank).give_up(); }
  /// Those that have joined with this world have agreed on something with all others. Before, a mismatch is their own loss (as_loss()).
  void trust_joined() { options_.joined = 0; }
  /// Runs once if the world fails.
  void set_failure_handler(std::function<void(const Status&)> handler) { failure_handler_ = std::move(handler); }
  void send_control(int rank, const wire::ControlMessage& message) override;
  /// How many messages to the rank have not left, because it does not read them.
  std::size_t unread_by(int rank) const { return peers_.session(rank).unsent_owned(); }
  /// The handler is called for operations that take longer than `WorldOptions::warn_after`.
  void set_delay_handler(DelayHandler handler) { delays_.set_handler(std::move(handler)); }
  void set_identity(Identity identity) { identity_ = std::move(identity); }
  /// This rank's running and finished operations.
  wire::RankState state() const { return state(options_.rank, {}); }
  /// Asks all other ranks for their state. `done` runs once, from the loop, within a second, or never where the world is closed first.
  /// Returns false where too many surveys are under way, or the world has failed or is closing.
  bool survey(Surveys::Done done);
  /// Sets the rank's name for people. Statuses that blame the rank contain it.
  void set_rank_name(int rank, std::string name) { peers_.set_name(rank, std::move(name)); }
  const std::string& rank_name(int rank) const override { return peers_.name(rank); }
  /// Of an elastic world: where processes knock that are to join the rank's group, as the ranks have told each other when they met. Port 0
  /// where that is not known, and of a guest.
  ///@{
  void set_door(int rank, Address door) { peers_.set_door(rank, std::move(door)); }
  const Address& door(int rank) const { return peers_.door(rank); }
  ///@}

  /// What the link with a rank has sent; nothing where that is not counted.
  std::optional<SendCounters> send_counters(int rank) const {
    return has_session(rank) ? peers_.session(rank).send_counters() : std::nullopt;
  }
  /// Changes the speeds by which groups divide buffers.
  PartsSwitch& parts() { return parts_; }
  const PartsSwitch& parts() const { return parts_; }
  /// Sets what rank 0 says of the parts to those who ask for its state.
  void set_parts_text(std::string text) { parts_text_ = std::move(text); }

  /// Sets what the ranks have agreed on while they met, for all groups. To be called before the first operation.
  void set_placement(const AgreedPlacement& agreed);
  /// WorldOptions::job, which rank 0 has announced.
  void set_job(std::uint64_t job) { options_.job = job; }
  /// The group of all ranks. It exists from the start until it is left.
  GroupEngine& group() { return *group_; }
  /// Forms groups out of `parent` (split.hpp).
  void split(GroupEngine& parent, std::uint16_t stream, SplitTask task);
  /// Forms a group of some ranks of `parent` (create_group.hpp).
  void create(GroupEngine& parent, CreateTask task);
  /// Leaves a group, in which no operation may be pending, and destroys it. The world goes on, even without the group of all ranks.
  void leave(GroupEngine& group);

  /// Ends the world on all ranks with this reason. Only the first call has an effect.
  void fail(const Status& status) override;
  void on_violation(int rank, const std::string& text) override;
  /// Ends the epoch of an elastic group on purpose, on all its ranks; a guest's world may do so, too.
  void revoke() { fail({Errc::cancelled, "rank " + std::to_string(options_.rank) + " has ended the epoch", options_.rank}); }
  /// Leaves the world: says goodbye to every rank, waits until all have read it, then closes the links. A rank that is silent for the
  /// heartbeat timeout is not waited for, nor after a failure one that takes longer than the close timeout. Pending operations end as
  /// `cancelled`. `on_closed` runs once, from the loop.
  void close(std::function<void()> on_closed);

  const Status& failure() const override { return failure_; }
  /// What is kept for another rank whose operations have not started here.
  const EarlyCost& kept_early(int rank) const { return peers_.session(rank).kept_early(); }
  bool busy() const { return !groups_.idle(); }
  /// Whether all its groups were left.
  bool unused() const { return groups_.empty(); }
  bool has_left_world(int rank) const override { return peers_.has_left(rank); }
  bool is_held_back() const override { return parts_.is_open(); }
  const wire::PartsChange* last_change() const override { return parts_.last_change(); }
  const WorldOptions& options() const override { return options_; }

 private:
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_control(Session& session, ConstBytes payload) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;
  Session& session_with(int rank) override { return peers_.session(rank); }
  EventLoop& loop() override { return loop_; }

  /// The peer ends the world and says why.
  void on_abort(int peer, const Status& status);
  void on_revoke(int peer, const wire::Revoke& revoke);
  void on_question(int peer, const wire::StateQuestion& question);
  wire::RankState state(int peer, const wire::StateQuestion& question) const;
  void on_goodbye(int peer);
  void on_relayed_link_lost(int peer, const Status& status);
  /// Tells a peer why the world has failed, as its last message to it.
  void send_end(Session& session);
  /// Nothing can be heard from the rank any more.
  void lose(int rank, const Status& status);
  void tell_lost(int rank);
  void check_heartbeats(Instant now);
  void schedule_tick();
  void tick();
  /// A peer that has said goodbye reads nothing more, so its link need not live as long as the world.
  void close_if_over(const Session& session);
  void finish_closing_if_done();
  bool has_waited_enough(Instant now) const;
  void finish_closing();
  void end_operations(const Status& status);

  EventLoop& loop_;
  WorldOptions options_;
  Peers peers_;
  GroupTable groups_;  // destroyed before the sessions, which may hold its frame sources
  GroupEngine* group_ = nullptr;
  Heartbeats heartbeats_;
  Surveys surveys_;
  DeadlineWatch deadlines_;
  DelayWatch delays_;
  ClockComparison clock_;
  PartsSwitch parts_;
  std::string parts_text_;
  Identity identity_;
  ControlHandler control_handler_;
  std::function<void(const Status&)> failure_handler_;
  EpochUser* epoch_user_ = nullptr;
  std::map<int, wire::ControlMessage> early_agreement_;  // by rank: its last message for the user while there was none
  std::vector<bool> heard_;                              // by rank
  std::function<void()> on_closed_;
  Status failure_;
  Status mismatch_;  // which `failure_` reports as the loss of a guest, or of one that has just joined; that rank and the native ones are
                     // told of it
  bool closing_ = false;
  bool breaks_off_ = false;  // it is closed while operations are pending
  Instant close_start_{};
  TimerId tick_timer_ = 0;
  AliveGuard guard_;
  TimerId word_timer_ = 0;  // a relayed link broke, and the rank to blame is not known yet
};

}  // namespace ringlet
