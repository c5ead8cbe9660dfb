#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/engine/group_engine.hpp"

namespace ringlet {

/// The answers of ranks that were asked for their state.
struct Survey {
  std::vector<int> asked;               // ranks in the world, each once
  std::map<int, wire::RankState> told;  // by rank in the world: those that have answered
};

/// Asks ranks for their state. An answer takes as long as the asked rank's loop needs to turn; a rank that has not answered within
/// `kPatience` counts as one that does not answer. Belongs to the loop's thread.
class Surveys {
 public:
  using Id = std::uint32_t;
  using Done = std::function<void(const Survey&)>;
  static constexpr Duration kPatience = Duration::milliseconds(700);

  explicit Surveys(GroupHost& host) : host_(host) {}

  /// Whether as many are under way as there should be at a time. The one that names the rank behind a missed deadline is started even so.
  bool full() const { return open_.size() >= kMaxOpen; }
  /// Asks ranks of the world, whatever they do. `done` runs once, from on_state() or on_tick().
  Id ask(const std::vector<int>& ranks, Done done);
  /// Asks the members of an operation's group about its stream, but for those that have left; of a message only the other side.
  Id ask_members(const Pending& pending, Done done);
  void cancel(Id id) { open_.erase(id); }
  void cancel_all() { open_.clear(); }
  /// From a rank in the world. An answer that was not asked for, or comes too late, is ignored.
  void on_state(int from, const wire::RankState& state);
  void on_tick(Instant now);

 private:
  static constexpr std::size_t kMaxOpen = 16;

  struct Open {
    Survey survey;
    Instant give_up_at{};
    Done done;
  };
  Id start(const std::map<int, wire::StateQuestion>& questions, Done done);
  void conclude(Id id);

  GroupHost& host_;
  std::map<Id, Open> open_;
  Id last_id_ = 0;
};

}  // namespace ringlet
