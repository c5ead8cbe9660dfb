#pragma once

#include <map>
#include <optional>
#include <ringlet/delay.hpp>
#include <vector>

#include "core/engine/group_table.hpp"
#include "core/engine/surveys.hpp"

namespace ringlet {

/// Warns of operations that take long, and finds out whom they wait for: a survey of the other members each time the warning limit, then
/// twice of it, four times and so on have passed. Ends nothing. Belongs to the loop's thread.
class DelayWatch {
 public:
  /// Nothing is watched before there is a handler.
  DelayWatch(GroupHost& host, GroupTable& groups, Surveys& surveys) : host_(host), groups_(groups), surveys_(surveys) {}

  void set_handler(DelayHandler handler) { handler_ = std::move(handler); }
  /// Looks for operations that take long, and for those that have gone on after a warning.
  void on_tick(Instant now);
  /// Drops what is about this group, which is idle and about to go, after a last word about each warning.
  void forget(const GroupEngine& group);
  /// Drops all, as the world has failed.
  void stop();

 private:
  /// Operations are many only where a program starts them without waiting: then the oldest stand for the others.
  static constexpr std::size_t kMost = 64;

  struct Watched {
    Pending pending;
    std::string name;
    Instant next_warning{};
    std::optional<Surveys::Id> survey{};
    bool warned = false;
  };
  bool enabled() const { return handler_ && host_.options().warn_after > Duration{}; }
  void drop_ended(Instant now);
  void add_new(Instant now);
  void ask(Watched& watched);
  void on_survey(const Pending& pending, const Survey& survey);
  Delay delay_of(const Watched& watched, Instant now) const;
  void tell_over(const Watched& watched, Instant now);

  GroupHost& host_;
  GroupTable& groups_;
  Surveys& surveys_;
  DelayHandler handler_;
  std::vector<Watched> watched_;
  std::vector<Pending> found_;
  std::map<int, std::string> hosts_;  // of ranks that have said it
};

}  // namespace ringlet
