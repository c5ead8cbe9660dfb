#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/alive_guard.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/admission.hpp"
#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/coordinator.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "core/rendezvous/link_table.hpp"
#include "core/rendezvous/listeners.hpp"
#include "core/rendezvous/meeting_options.hpp"
#include "core/rendezvous/rank_dials.hpp"
#include "core/rendezvous/ready_barrier.hpp"

namespace ringlet {

/// Brings the ranks of a world together: every pair gets one link, and no rank goes on before all have all. It moves from phase to phase,
/// each of which is an object: Listeners, then RankDials and Admission, on rank 0 beside them the Coordinator, then the ReadyBarrier.
///
/// Of two native ranks the higher dials, and where the other has several addresses the fastest is taken (link_race.hpp), also instead of
/// the link to rank 0 over which it joined; a guest dials every native rank; two guests both dial a native rank, which relays. A guest's
/// world has its session with rank 0 already (guest_entry.hpp), and its options name rank 0 as the coordinator, as the guest has reached
/// it. While the meeting lives, in a world with guests also after all have met, it tells newcomers that the group is complete. Belongs to
/// the loop's thread.
class Meeting {
 public:
  /// Takes the links that `incoming`, null on a guest, authenticates while it lives. All outlive it.
  Meeting(EventLoop& loop, Network& network, Authenticator& authenticator, IncomingLinks* incoming, World& world, MeetingOptions options);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Used where a listening socket was inherited: the listener gives its links to `incoming`. Before start().
  void use_listener(std::unique_ptr<Listener> listener) { listeners_.adopt(std::move(listener)); }

  /// `on_met` runs once, from the loop: ok, or why the ranks have not met. The world has failed then.
  void start(std::function<void(const Status&)> on_met);

  /// The world's number. Once all have met, it is the same on all ranks.
  std::uint64_t world_id() const { return options_.world_id; }

 private:
  int rank() const { return world_.options().rank; }
  bool is_guest() const { return world_.options().is_guest(rank()); }

  Status listen();
  void admit();
  void dial();
  wire::Member own_member() const;
  wire::Join make_join() const;
  void advance();

  void on_control(int from, const wire::ControlMessage& message);
  void on_roster(const wire::Roster& roster);
  void on_welcome(int from, const wire::Welcome& welcome);

  void set_deadline(Duration delay);
  void on_deadline();
  Status timeout_status() const;
  void finish(const Status& status);

  EventLoop& loop_;
  IncomingLinks* const incoming_;
  World& world_;
  MeetingOptions options_;
  std::function<void(const Status&)> on_met_;  // until it runs
  bool roster_known_;
  bool grace_given_ = false;
  TimerId deadline_timer_ = 0;

  LinkTable links_;
  ClosingSessions closing_;
  Dialler dialler_;
  Listeners listeners_;
  RankDials dials_;
  std::unique_ptr<Coordinator> coordinator_;  // rank 0, once it listens
  std::unique_ptr<Admission> admission_;      // once this rank listens, so not on guests
  ReadyBarrier barrier_;
  AliveGuard guard_;
};

}  // namespace ringlet
