#include "tools/job/restart_policy.hpp"

#include <algorithm>

namespace ringlet::job {

void RestartPolicy::add(Instant now) { ranks_.emplace_back().started = now; }

void RestartPolicy::add_waiting(Instant now) {
  Rank& rank = ranks_.emplace_back();
  rank.state = State::waiting;
  rank.due = now;
  missing_ = std::max(missing_ - 1, 0);
}

int RestartPolicy::left() const {
  return static_cast<int>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return runs(rank) || rank.state == State::waiting; }));
}

void RestartPolicy::note_member(int rank, Group group) {
  if (!runs(at(rank))) return;
  at(rank).state = State::member;
  at(rank).group = group;
}

bool RestartPolicy::note_exit(int number, bool well, Instant now) {
  Rank& rank = at(number);
  if (!runs(rank)) return rank.state == State::waiting;
  const State before = rank.state;
  if (well) {
    rank.state = State::well;
    return false;
  }
  if (rank.stopping) {
    rank.stopping = false;
    rank.due = now;
    rank.state = State::waiting;
    return true;
  }
  broken_ = broken_ || before == State::meeting;
  rank.failures_in_row = now - rank.started >= options_.settled_after ? 1 : rank.failures_in_row + 1;
  ++rank.failures;
  rank.state = rank.failures > options_.limit ? State::gone : State::waiting;
  rank.due = now + pause_of(rank);
  return rank.state == State::waiting;
}

void RestartPolicy::note_lost(int rank) {
  if (!counts(rank)) return;
  at(rank).state = State::gone;
  ++missing_;
}

Duration RestartPolicy::pause_of(const Rank& rank) const {
  Duration pause = options_.first_pause;
  for (int i = 1; i < rank.failures_in_row && pause < options_.longest_pause; ++i) pause = pause * 2;
  return std::min(pause, options_.longest_pause);
}

int RestartPolicy::count(State state) const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [state](const Rank& rank) { return rank.state == state; }));
}

std::vector<int> RestartPolicy::all(State state) const {
  std::vector<int> found;
  for (int rank = 0; rank < ranks(); ++rank)
    if (at(rank).state == state) found.push_back(rank);
  return found;
}

/// Returns those that have not been told yet.
std::vector<int> RestartPolicy::stop(std::vector<int> ranks) {
  ranks.erase(std::remove_if(ranks.begin(), ranks.end(), [this](int rank) { return at(rank).stopping; }), ranks.end());
  for (const int rank : ranks) at(rank).stopping = true;
  return ranks;
}

void RestartPolicy::start(const std::vector<int>& ranks, State state, Instant now) {
  for (const int rank : ranks) {
    at(rank).state = state;
    at(rank).started = now;
  }
}

RestartPolicy::Decision RestartPolicy::decide(Instant now) {
  if (count(State::well) > 0) return decide_at_end(now);
  if (left() == 0) return {Act::end};
  if (!may_have_enough()) return {Act::give_up};
  short_since_ = is_short() ? std::optional(short_since_.value_or(now)) : std::nullopt;
  const auto limit = short_since_ ? std::optional(*short_since_ + options_.wait) : std::nullopt;
  if (limit && *limit <= now) return {Act::give_up};
  Decision decision = members() > 0 ? decide_with_members(now) : decide_without_members(now);
  if (limit && decision.act == Act::wait) decision.until = std::min(decision.until.value_or(*limit), *limit);
  return decision;
}

/// Ranks that meet will be members at once, so a group that begins is not short.
bool RestartPolicy::is_short() const {
  return left() < options_.least || (members() > 0 && members() + count(State::meeting) < options_.least);
}

/// Whether as many ranks run, or will, as are needed, or others may come for those that were lost.
bool RestartPolicy::may_have_enough() const { return left() + (options_.may_grow ? missing_ : 0) >= options_.least; }

std::vector<int> RestartPolicy::left_out() const {
  std::vector<int> found = all(State::member);
  std::erase_if(found, [this](int rank) {
    return std::none_of(ranks_.begin(), ranks_.end(), [&group = at(rank).group](const Rank& other) {
      return other.group.lineage == group.lineage && other.group.epoch > group.epoch;
    });
  });
  return found;
}

/// A rank has ended well, so the program has come to its end: what failed is not needed any more.
RestartPolicy::Decision RestartPolicy::decide_at_end(Instant now) {
  for (const int rank : all(State::waiting)) at(rank).state = State::gone;
  std::vector<int> useless = left_out();
  if (count(State::member) > static_cast<int>(useless.size()) || count(State::meeting) > 0) return {};
  // They knock at doors that nobody opens.
  if (auto ranks = stop(all(State::joining)); !ranks.empty()) return {Act::stop, std::move(ranks)};
  if (useless.empty()) return count(State::joining) == 0 ? Decision{Act::end} : Decision{};
  over_since_ = over_since_.value_or(now);
  const Instant due = *over_since_ + options_.left_out_time;
  if (now < due) return {Act::wait, {}, due};
  useless = stop(std::move(useless));
  return useless.empty() ? Decision{} : Decision{Act::stop, std::move(useless)};
}

RestartPolicy::Decision RestartPolicy::decide_with_members(Instant now) {
  Decision decision;
  for (const int rank : all(State::waiting)) {
    const Instant due = at(rank).due;
    if (due <= now)
      decision.ranks.push_back(rank);
    else
      decision.until = std::min(decision.until.value_or(due), due);
  }
  if (decision.ranks.empty()) return decision;
  start(decision.ranks, State::joining, now);
  return {Act::join, std::move(decision.ranks)};
}

RestartPolicy::Decision RestartPolicy::decide_without_members(Instant now) {
  // Ranks that meet would wait for the one that has failed. If none meets, those that join have nobody to join.
  const int meeting = count(State::meeting);
  if ((options_.limit > 0 && meeting > 0 && broken_) || (meeting == 0 && count(State::joining) > 0)) {
    std::vector<int> useless = all(State::meeting);
    const std::vector<int> joining = all(State::joining);
    useless.insert(useless.end(), joining.begin(), joining.end());
    std::sort(useless.begin(), useless.end());
    useless = stop(std::move(useless));
    return useless.empty() ? Decision{} : Decision{Act::stop, std::move(useless)};
  }
  if (meeting > 0 || count(State::joining) > 0) return {};
  if (left() < options_.least) return {};
  const std::vector<int> waiting = all(State::waiting);
  Instant due{};
  for (const int rank : waiting) due = std::max(due, at(rank).due);
  if (due > now) return {Act::wait, {}, due};
  broken_ = false;
  start(waiting, State::meeting, now);
  return {Act::start_anew, waiting};
}

}  // namespace ringlet::job
