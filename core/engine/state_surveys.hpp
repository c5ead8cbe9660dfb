#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/engine/group_engine.hpp"

namespace ringlet {

/// What came back from ranks that were asked how they get on.
struct Survey {
  std::vector<int> asked;               // ranks in the world, each once
  std::map<int, wire::RankState> told;  // by rank in the world: those that have answered
};

/// Asks ranks how they get on. An answer takes as long as the asked rank's loop needs to turn; who has not answered within `kPatience` does
/// not. Belongs to the loop's thread.
class StateSurveys {
 public:
  using Id = std::uint32_t;
  using Done = std::function<void(const Survey&)>;
  static constexpr Duration kPatience = Duration::milliseconds(700);
  /// At a time.
  static constexpr std::size_t kMost = 16;

  explicit StateSurveys(GroupHost& host) : host_(host) {}

  bool full() const { return open_.size() >= kMost; }
  /// Asks, once and at once. A question's number is filled in here. `done` runs once, from on_state() or on_tick(). Not while full().
  Id start(const std::map<int, wire::StateQuestion>& questions, Done done);
  void cancel(Id id) { open_.erase(id); }
  void cancel_all() { open_.clear(); }
  /// From a rank in the world. What was not asked for, or came too late, is ignored.
  void on_state(int from, const wire::RankState& state);
  void on_tick(Instant now);

 private:
  struct Open {
    Survey survey;
    Instant give_up_at{};
    Done done;
  };
  void conclude(Id id);

  GroupHost& host_;
  std::map<Id, Open> open_;
  Id last_id_ = 0;
};

}  // namespace ringlet
