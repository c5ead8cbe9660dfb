#include "core/engine/delay_watch.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/delay_text.hpp"

namespace ringlet {

namespace {

/// Whether the rank that reports `state` is in this operation of the stream that it was asked about.
bool is_in(const wire::RankState& state, std::uint64_t sequence) { return state.ended == sequence && state.called > sequence; }

/// The share of the operation's bytes that has been received; 1 where there is nothing to receive.
double received_share(const wire::OperationState& operation) {
  return operation.to_receive == 0 ? 1.0 : static_cast<double>(operation.received) / static_cast<double>(operation.to_receive);
}

std::string describe_slowest(const Survey& survey, std::uint64_t sequence) {
  int rank = -1;
  const wire::OperationState* slowest = nullptr;
  for (const auto& [from, state] : survey.told) {
    if (!is_in(state, sequence) || state.running.empty()) continue;
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
    if (known || watched_.size() >= kMax) continue;
    watched_.push_back({pending, name_of(pending.group->state(pending, now)), pending.started + host_.options().warn_after});
  }
}

void DelayWatch::ask(Watched& watched) {
  const Pending& pending = watched.pending;
  watched.survey = surveys_.ask_members(pending, [this, pending](const Survey& survey) { on_survey(pending, survey); });
}

void DelayWatch::on_survey(const Pending& pending, const Survey& survey) {
  const auto found = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& watched) { return watched.pending == pending; });
  if (found == watched_.end()) return;
  Watched& watched = *found;
  watched.survey.reset();
  const Instant now = host_.loop().now();
  if (!pending.group->is_pending(pending)) return;

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
    const bool has_arrived = !pending.is_message() && is_in(state, pending.sequence);
    if (has_arrived) delay.speaks &= rank > delay.rank;
    if (has_arrived || (!pending.is_message() && state.ended > pending.sequence)) continue;
    delay.late.push_back({rank, hosts_[rank], true, describe_absent(state, own)});
  }
  delay.text = describe_delay(delay, pending.is_message() ? std::string() : describe_slowest(survey, pending.sequence));
  watched.warned = true;
  watched.next_warning = now + (now - pending.started);
  handler_(delay);
}

Delay DelayWatch::delay_of(const Watched& watched, Instant now) const {
  Delay delay;
  delay.rank = host_.options().rank;
  delay.operation = watched.name;
  delay.waited = std::chrono::milliseconds((now - watched.pending.started).whole_milliseconds());
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
    // The group is idle, so an operation that was warned of has ended since the last tick.
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
