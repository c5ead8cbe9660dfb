#pragma once

#include <optional>

#include "core/engine/group_table.hpp"
#include "core/engine/surveys.hpp"

namespace ringlet {

/// Ends the world once the deadline of an operation or a message has passed. The rank that an operation waits for may itself only be
/// waiting, as along a ring: so all members are asked, and the one that is named is found by going from each waiting rank to the one that
/// it waits for, up to one that has not called the operation or does not answer. One operation at a time, within Surveys::kPatience.
/// Belongs to the loop's thread.
class DeadlineWatch {
 public:
  DeadlineWatch(GroupHost& host, GroupTable& groups, Surveys& surveys) : host_(host), groups_(groups), surveys_(surveys) {}

  void on_tick(Instant now);
  /// Drops the operation that is asked about if it is this group's, which is about to go.
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
