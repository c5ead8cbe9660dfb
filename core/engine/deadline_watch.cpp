#include "core/engine/deadline_watch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace ringlet {

namespace {

/// The rank in the group that the reporting rank waits for first in this operation; nothing where it reports none.
std::optional<int> first_awaited(const wire::OperationState& operation, const Membership& members) {
  return operation.waits_for.empty() ? std::nullopt : members.rank_of(static_cast<int>(operation.waits_for.front()));
}

}  // namespace

void DeadlineWatch::on_tick(Instant now) {
  if (const Status status = groups_.check_messages(now); !status.ok()) return host_.fail(status);
  if (asked_ && !asked_->pending.group->is_pending(asked_->pending)) stop();
  if (asked_) return;
  const auto overdue = groups_.overdue(now);
  if (!overdue) return;
  asked_ = Asked{*overdue, surveys_.ask_members(*overdue, [this](const Survey& survey) { on_survey(survey); })};
}

void DeadlineWatch::on_survey(const Survey& survey) {
  const Pending pending = std::exchange(asked_, std::nullopt)->pending;
  // An operation that has ended during the survey has succeeded.
  if (pending.group->is_pending(pending)) host_.fail(find_timeout(pending, survey));
}

Status DeadlineWatch::find_timeout(const Pending& pending, const Survey& survey) const {
  const GroupEngine& group = *pending.group;
  const Membership& members = group.members();
  std::vector<bool> met(static_cast<std::size_t>(members.size()));
  met[static_cast<std::size_t>(group.options().rank)] = true;
  std::uint64_t sequence = pending.sequence;
  auto next = first_awaited(group.state(pending, host_.loop().now()), members);
  // If the ranks wait for each other in a circle, the missing bytes are under way, and the status says what this rank sees itself.
  while (next && !met[static_cast<std::size_t>(*next)]) {
    met[static_cast<std::size_t>(*next)] = true;
    const int world_rank = members.world_rank(*next);
    const auto told = survey.told.find(world_rank);
    if (told == survey.told.end()) {
      const bool was_asked = std::find(survey.asked.begin(), survey.asked.end(), world_rank) != survey.asked.end();
      return was_asked ? group.timeout(pending.stream, *next, "does not answer") : group.timeout(pending.stream);
    }
    const wire::RankState& state = told->second;
    if (state.ended > sequence) break;
    const bool in_operation = state.called > state.ended && !state.running.empty();
    if (!in_operation && state.called <= sequence) {
      const std::string operation = sequence == pending.sequence ? "it" : group.operation_name(pending.stream, sequence);
      return group.timeout(pending.stream, *next, "has not called " + operation);
    }
    if (!in_operation) break;
    sequence = state.ended;
    next = first_awaited(state.running.front(), members);
  }
  return group.timeout(pending.stream);
}

void DeadlineWatch::forget(const GroupEngine& group) {
  if (asked_ && asked_->pending.group == &group) stop();
}

void DeadlineWatch::stop() {
  if (asked_) surveys_.cancel(asked_->survey);
  asked_.reset();
}

}  // namespace ringlet
