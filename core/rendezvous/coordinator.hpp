#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/world.hpp"
#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/link_table.hpp"
#include "core/rendezvous/seats.hpp"

namespace ringlet {

struct CoordinatorOptions {
  std::uint64_t world_id = 0;
  /// Where ranks can be dialled, as far as that is known from the start: rank 0 itself and, with a hostfile, the native ranks.
  std::vector<wire::Member> known{};
  /// Whether native ranks join to get the roster, which they are then sent. With a hostfile only guests are sent it.
  bool natives_join = false;
  /// How long guests wait for the others.
  Duration timeout = Duration::seconds(60);
  /// Called with the names of the guests that are there, by seat, whenever these may have changed.
  std::function<void(const std::vector<std::string>& names)> on_guests{};
};

/// Rank 0's part while the ranks meet: it gathers the ranks, and sends them the roster once all are there. Belongs to the loop's thread.
class Coordinator {
 public:
  /// All arguments outlive it. `on_changed` runs from the loop when a guest has gone.
  Coordinator(EventLoop& loop, World& world, LinkTable& links, CoordinatorOptions options, std::function<void()> on_changed);

  /// Adds a native rank that has joined. The world has its session already, and `links` its link.
  void add(wire::Member member);
  /// Gives a guest a seat. Where there is none for it, returns `invalid_argument`, and the session stays with the caller.
  Status seat(std::unique_ptr<Session>& session, const std::string& name);
  /// Tells the guests how many ranks are there. When all are there for the first time, all are sent the roster, and guests become ranks of
  /// the world. Where a faster link with rank 0 may be found, `links` then expects another one from each native rank.
  void update();

  /// By rank; ranks that are not known have no host.
  const std::vector<wire::Member>& members() const { return members_; }
  /// Whether the world has guests and they are not ranks yet.
  bool awaits_guests() const { return seats_ != nullptr; }
  int guests_here() const { return seats_ ? seats_->taken() : 0; }
  /// Rejects all guests that are not ranks yet.
  void reject_guests(const Status& reason, ClosingSessions& closing);

 private:
  int ranks_here() const;
  void turn_guests_into_ranks();
  wire::Roster make_roster() const;

  World& world_;
  LinkTable& links_;
  const CoordinatorOptions options_;
  std::vector<wire::Member> members_;  // by rank; ranks that are not known have no host
  std::unique_ptr<Seats> seats_;       // until the world is complete; null where it has no guests
  bool complete_ = false;
};

}  // namespace ringlet
