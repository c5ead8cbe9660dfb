#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/group_engine.hpp"

namespace ringlet {

/// The answers of ranks that were asked for their state.
struct Survey {
  std::vector<int> asked;               // ranks in the world, each once
  std::map<int, wire::RankState> told;  // by rank in the world: those that have answered
};

/// Asks ranks for their state. A rank answers as soon as its loop turns. One that has not answered within `kPatience` counts as not
/// answering. Belongs to the loop's thread.
class Surveys {
 public:
  using Id = std::uint32_t;
  using Done = std::function<void(const Survey&)>;
  static constexpr Duration kPatience = Duration::milliseconds(700);

  explicit Surveys(GroupHost& host) : host_(host) {}

  /// Whether the limit of surveys at a time has been reached. The survey that names the rank behind a missed deadline is started all the
  /// same.
  bool full() const { return open_.size() >= kMaxOpen; }
  /// Asks ranks of the world for all that they do. `done` runs once, from on_state(), on_tick() or the loop.
  Id ask(const std::vector<int>& ranks, Done done);
  /// Asks the members of an operation's group about its stream, except those that have left. For a message only the other side is asked.
  Id ask_members(const Pending& pending, Done done);
  void cancel(Id id) { open_.erase(id); }
  void cancel_all() { open_.clear(); }
  /// Takes the answer of a rank of the world. An answer that was not asked for, or comes too late, is ignored.
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
  AliveGuard alive_;
};

}  // namespace ringlet
