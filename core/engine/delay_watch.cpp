#include "core/engine/delay_watch.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/delay_text.hpp"

namespace ringlet {

namespace {

using Arrival = wire::RankState::Arrival;

/// How much of it has come; 1 where nothing has to.
double received_share(const wire::OperationState& operation) {
  return operation.to_receive == 0 ? 1.0 : static_cast<double>(operation.received) / static_cast<double>(operation.to_receive);
}

std::string describe_slowest(const Survey& survey) {
  int rank = -1;
  const wire::OperationState* slowest = nullptr;
  for (const auto& [from, state] : survey.told) {
    if (state.arrival != Arrival::arrived || state.running.empty()) continue;
    const wire::OperationState& own = state.running.front();
    if (slowest != nullptr && received_share(own) >= received_share(*slowest)) continue;
    rank = from;
    slowest = &own;
  }
  return slowest == nullptr ? "" : "rank " + std::to_string(rank) + " " + describe_present(*slowest);
}

}  // namespace

void DelayWatch::on_tick(Instant now) {
  if (!enabled()) return;
  found_.clear();
  groups_.find_pending({now.nanoseconds - host_.options().warn_after.nanoseconds}, found_);
  drop_ended(now);
  add_new(now);
  for (Watched& watched : watched_)
    if (!watched.survey && now >= watched.next_warning && !surveys_.full()) ask(watched);
}

void DelayWatch::drop_ended(Instant now) {
  const auto ended = std::stable_partition(watched_.begin(), watched_.end(), [&](const Watched& watched) {
    return std::find(found_.begin(), found_.end(), watched.pending) != found_.end();
  });
  std::vector<Watched> over(std::make_move_iterator(ended), std::make_move_iterator(watched_.end()));
  watched_.erase(ended, watched_.end());
  for (const Watched& watched : over) {
    if (watched.survey) surveys_.cancel(*watched.survey);
    if (watched.warned) tell_over(watched, now);
  }
}

void DelayWatch::add_new(Instant now) {
  for (const Pending& pending : found_) {
    const bool known = std::any_of(watched_.begin(), watched_.end(), [&](const Watched& watched) { return watched.pending == pending; });
    if (known || watched_.size() >= kMost) continue;
    watched_.push_back({pending, name_of(pending.group->state(pending, now)), pending.underway.started + host_.options().warn_after});
  }
}

void DelayWatch::ask(Watched& watched) {
  const Pending& pending = watched.pending;
  const Membership& members = pending.group->members();
  std::map<int, wire::StateQuestion> questions;
  for (int rank = 0; rank < members.size(); ++rank) {
    // Who has left needs nothing of the operation any more, or the world would have failed.
    if (rank == pending.group->options().rank || pending.group->has_left(rank) || (pending.is_message && rank != pending.underway.peer))
      continue;
    questions[members.world_rank(rank)] = {0, !pending.is_message, members.group_id(rank), pending.stream, pending.underway.sequence};
  }
  // Of another question's answers only this operation is known, which may have ended.
  watched.survey = surveys_.start(questions, [this, pending](const Survey& survey) { on_survey(pending, survey); });
}

void DelayWatch::on_survey(const Pending& pending, const Survey& survey) {
  const auto found = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& watched) { return watched.pending == pending; });
  if (found == watched_.end()) return;
  Watched& watched = *found;
  watched.survey.reset();
  const Instant now = host_.loop().now();
  found_.clear();
  groups_.find_pending(pending.underway.started, found_);
  if (std::find(found_.begin(), found_.end(), pending) == found_.end()) return;

  const wire::OperationState own = pending.group->state(pending, now);
  Delay delay = delay_of(watched, now);
  for (const int rank : survey.asked) {
    const auto told = survey.told.find(rank);
    if (told == survey.told.end()) {
      const Duration silence = now - host_.session_with(rank).last_received();
      const auto host = hosts_.find(rank);
      delay.late.push_back(
          {rank, host == hosts_.end() ? host_.rank_name(rank) : host->second, false, "has not answered for " + seconds_text(silence)});
      continue;
    }
    const wire::RankState& state = told->second;
    hosts_[rank] = state.host.empty() ? host_.rank_name(rank) : state.host;
    if (state.arrival == Arrival::arrived) delay.speaks &= rank > delay.rank;
    if (!pending.is_message && state.arrival != Arrival::not_arrived) continue;
    delay.late.push_back({rank, hosts_[rank], true, describe_absent(state, own)});
  }
  delay.text = describe_delay(delay, describe_slowest(survey));
  watched.warned = true;
  watched.next_warning = now + (now - pending.underway.started);
  handler_(delay);
}

Delay DelayWatch::delay_of(const Watched& watched, Instant now) const {
  Delay delay;
  delay.rank = host_.options().rank;
  delay.operation = watched.name;
  delay.waited = std::chrono::milliseconds((now - watched.pending.underway.started).whole_milliseconds());
  return delay;
}

void DelayWatch::tell_over(const Watched& watched, Instant now) {
  Delay delay = delay_of(watched, now);
  delay.over = true;
  delay.text = describe_delay(delay, {});
  handler_(delay);
}

void DelayWatch::forget(const GroupEngine& group) {
  std::erase_if(watched_, [&](const Watched& watched) {
    if (watched.pending.group != &group) return false;
    if (watched.survey) surveys_.cancel(*watched.survey);
    // Nothing of it is pending: what was warned of has gone on since the last tick.
    if (watched.warned) tell_over(watched, host_.loop().now());
    return true;
  });
}

void DelayWatch::stop() {
  for (const Watched& watched : watched_)
    if (watched.survey) surveys_.cancel(*watched.survey);
  watched_.clear();
}

}  // namespace ringlet
