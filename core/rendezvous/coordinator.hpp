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
  /// Where each rank can be dialled, by rank, as far as that is known from the start: rank 0 itself and, with a hostfile, the natives.
  std::vector<wire::Member> known{};
  /// The native ranks have joined to get the roster, and are sent it; with a hostfile only guests are.
  bool natives_join = false;
  /// How long guests wait for the others.
  Duration timeout = Duration::seconds(60);
  /// The names of the guests that are there, by seat, whenever they may have changed.
  std::function<void(const std::vector<std::string>& names)> on_guests{};
};

/// Rank 0's part while the ranks meet: gathers the ranks, and gives them the roster once all are there. Belongs to the loop's thread.
class Coordinator {
 public:
  /// All outlive it. `on_changed` runs from the loop when a guest has gone.
  Coordinator(EventLoop& loop, World& world, LinkTable& links, CoordinatorOptions options, std::function<void()> on_changed);

  /// A native rank has joined; the world has its session, and `links` its link.
  void add(wire::Member member);
  /// Gives a guest a seat. Where there is none for it: `invalid_argument`, and the session stays the caller's.
  Status seat(std::unique_ptr<Session>& session, const std::string& name);
  /// Tells the guests how many are there. Where that is everyone for the first time, all get the roster; guests are ranks of the world
  /// then, and where a faster link with rank 0 may be found, `links` expects another one from each native rank.
  void update();

  /// Guests have come, or are still missing, and none is a rank yet.
  bool awaits_guests() const { return seats_ != nullptr; }
  int guests_here() const { return seats_ ? seats_->taken() : 0; }
  /// Sends all guests away that are no ranks yet.
  void reject_guests(const Status& reason, ClosingSessions& closing);

 private:
  int ranks_here() const;
  void turn_guests_into_ranks();
  wire::Roster make_roster() const;

  World& world_;
  LinkTable& links_;
  const CoordinatorOptions options_;
  std::vector<wire::Member> members_;  // by rank; those that are not known have no host
  std::unique_ptr<Seats> seats_;       // until the world is complete; null where it has no guests
  bool complete_ = false;
};

}  // namespace ringlet
