#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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

/// Brings the ranks of a world together: every pair gets one link, and no rank goes on before all ranks have all their links. A meeting has
/// several phases, each of which is an object: Listeners, then RankDials and Admission, with the Coordinator on rank 0, then the
/// ReadyBarrier.
///
/// Of two native ranks the higher one dials. Where the other one has several addresses, the fastest is taken (link_race.hpp); for rank 0
/// its link may replace the one over which the dialler joined. A guest dials every native rank; two guests both dial a native rank, which
/// relays. A guest's world has its session with rank 0 already (guest_entry.hpp), and its options name the address at which it has reached
/// rank 0 as the coordinator. In a world with guests the meeting tells ranks that come too late that the group is complete, as long as it
/// lives. Belongs to the loop's thread.
class Meeting {
 public:
  /// While it lives, it takes the links that `incoming`, which is null on a guest, has authenticated. All arguments outlive it.
  Meeting(EventLoop& loop, Network& network, Authenticator& authenticator, IncomingLinks* incoming, World& world, MeetingOptions options);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Used where a listening socket was inherited: the listener gives its links to `incoming`. To be called before start().
  void use_listener(std::unique_ptr<Listener> listener) { listeners_.adopt(std::move(listener)); }

  /// `on_met` runs once, from the loop, with ok, or with the reason why the ranks have not met; the world has failed in that case.
  void start(std::function<void(const Status&)> on_met);

  /// The world's number. Once all have met, it is the same on all ranks.
  std::uint64_t world_id() const { return options_.world_id; }
  /// Where each native rank listens, by rank, once all have met.
  std::vector<Address> listening_addresses() const;
  /// Of an elastic world that has met: the open ports, which otherwise close with this object.
  Listeners take_listeners() { return std::move(listeners_); }

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

  void schedule_report();
  void report();
  /// What this rank waits for, and the rank that is to blame for it, or -1.
  std::pair<std::string, int> waits_for() const;
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
  std::vector<wire::Member> members_;  // from the roster
  bool grace_given_ = false;
  TimerId deadline_timer_ = 0;
  TimerId report_timer_ = 0;
  std::string reported_;  // the last text

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
