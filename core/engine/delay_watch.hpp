#pragma once

#include <map>
#include <optional>
#include <ringlet/delay.hpp>
#include <vector>

#include "core/engine/group_table.hpp"
#include "core/engine/surveys.hpp"

namespace ringlet {

/// Warns of operations that take long, and finds out by a survey of the other members which ranks they wait for. It does so once an
/// operation has taken as long as the warning limit, then twice as long, four times and so on. It never ends an operation. Belongs to the
/// loop's thread.
class DelayWatch {
 public:
  /// Nothing is watched until set_handler() has been called.
  DelayWatch(GroupHost& host, GroupTable& groups, Surveys& surveys) : host_(host), groups_(groups), surveys_(surveys) {}

  void set_handler(DelayHandler handler) { handler_ = std::move(handler); }
  /// Looks for operations that take long, and for those that have ended after a warning.
  void on_tick(Instant now);
  /// Forgets the operations of this group, which is idle and about to be destroyed. Those that were warned of are reported as over.
  void forget(const GroupEngine& group);
  /// Forgets all operations, because the world has failed.
  void stop();

 private:
  /// Only a program that starts operations without waiting has more than this; then only the oldest ones are watched.
  static constexpr std::size_t kMax = 64;

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
  std::map<int, std::string> hosts_;  // by rank, of those that have answered a survey
};

}  // namespace ringlet
