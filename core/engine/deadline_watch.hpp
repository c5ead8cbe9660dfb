#pragma once

#include <optional>

#include "core/engine/group_table.hpp"
#include "core/engine/surveys.hpp"

namespace ringlet {

/// Ends the world once the deadline of an operation or a message has passed. The rank that an operation waits for may itself wait for
/// another one, for example along a ring. All members are therefore asked for their state, and the status blames the rank at the end of
/// that chain: one that has not called the operation or does not answer. Only one operation is examined at a time, which takes at most
/// Surveys::kPatience. Belongs to the loop's thread.
class DeadlineWatch {
 public:
  DeadlineWatch(GroupHost& host, GroupTable& groups, Surveys& surveys) : host_(host), groups_(groups), surveys_(surveys) {}

  void on_tick(Instant now);
  /// Cancels the survey that is under way if it is about an operation of this group, which is about to be destroyed.
  void forget(const GroupEngine& group);
  void stop();

 private:
  struct Asked {
    Pending pending;
    Surveys::Id survey = 0;
  };
  void on_survey(const Survey& survey);
  Status find_timeout(const Pending& pending, const Survey& survey) const;

  GroupHost& host_;
  GroupTable& groups_;
  Surveys& surveys_;
  std::optional<Asked> asked_;
};

}  // namespace ringlet
