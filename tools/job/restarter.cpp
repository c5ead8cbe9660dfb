#include "tools/job/restarter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringlet::job {

namespace {

/// A rank says by itself what group it is in, so the number of lineages has to have an end.
constexpr std::size_t kMaxLineages = 1'024;

std::string count_of(std::uint32_t count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

double seconds_of(Duration duration) { return static_cast<double>(duration.whole_milliseconds()) / 1000; }

std::string describe(const Membership& change) {
  std::string text = fmt::format("epoch {}: {}", change.epoch, count_of(change.world_size, "rank"));
  if (change.joined > 0) text += fmt::format(", {} of them new", change.joined);
  if (!change.lost.empty()) text += fmt::format(" without {} of the epoch before", list_ranks({change.lost.begin(), change.lost.end()}));
  text += fmt::format(", after {:.1f} ms", static_cast<double>(change.pause_us) / 1000);
  return change.cause.empty() ? text : text + ": " + change.cause;
}

}  // namespace

Restarter::Restarter(EventLoop& loop, const RestartPolicy::Options& options, Actions actions)
    : loop_(loop), options_(options), actions_(std::move(actions)), policy_(options) {}

void Restarter::finish() {
  finished_ = true;
  loop_.cancel(std::exchange(timer_, 0));
}

void Restarter::add() { policy_.add(loop_.now()); }

void Restarter::add_waiting() {
  policy_.add_waiting(loop_.now());
  decide_soon();
}

void Restarter::note_member(const Membership& membership) {
  const int rank = static_cast<int>(membership.rank);
  if (rank >= policy_.ranks() || !policy_.runs(rank) || membership.door.empty()) return;
  policy_.note_member(rank, {membership.lineage, membership.epoch});
  doors_[rank] = membership.door;
  tell_change(membership);
  decide_soon();
}

/// Each rank of the group tells of a change, and the first one counts.
void Restarter::tell_change(const Membership& change) {
  if (change.joined == 0 && change.lost.empty()) return;
  if (told_.size() >= kMaxLineages && !told_.contains(change.lineage)) return;
  const auto [told, is_new] = told_.try_emplace(change.lineage, change.epoch);
  if (!is_new && change.epoch <= told->second) return;
  told->second = change.epoch;
  actions_.say(describe(change));
}

bool Restarter::note_exit(const RankExit& exit) {
  if (exit.rank >= policy_.ranks()) return false;
  doors_.erase(exit.rank);
  const int before = policy_.failures(exit.rank);
  const bool returns = policy_.note_exit(exit.rank, exit.succeeded(), loop_.now());
  const int failures = policy_.failures(exit.rank);
  if (options_.limit > 0 && failures > before && !finished_)
    actions_.say(returns ? fmt::format("{}, and is started again (failure {} of {})", describe_end(exit), failures, options_.limit)
                         : fmt::format("{}, and is not started again, after {} (--restarts {})", describe_end(exit),
                                       count_of(static_cast<std::uint32_t>(failures), "failure"), options_.limit));
  decide_soon();
  return returns;
}

void Restarter::note_lost(int rank) {
  if (rank >= policy_.ranks()) return;
  doors_.erase(rank);
  policy_.note_lost(rank);
  decide_soon();
}

std::string Restarter::doors() const {
  std::string list;
  for (const auto& [rank, door] : doors_) list += (list.empty() ? "" : ",") + door;
  return list;
}

void Restarter::tell_shortage() {
  const bool is_short = policy_.short_since().has_value();
  if (std::exchange(was_short_, is_short) == is_short || !is_short || options_.wait.whole_milliseconds() == 0) return;
  const bool lacks_machines = policy_.left() < options_.least;
  const int here = std::min(policy_.left(), policy_.members());
  actions_.say(fmt::format("{} of the {} that the job needs {} there; it waits {} s at most for {} (--min-wait)", here,
                           count_of(static_cast<std::uint32_t>(options_.least), "rank"), here == 1 ? "is" : "are",
                           seconds_of(options_.wait), lacks_machines ? "another machine to come up" : "others to join"));
}

std::string Restarter::describe_lack() const {
  const std::string least = count_of(static_cast<std::uint32_t>(options_.least), "rank");
  if (!policy_.short_since() || loop_.now() < *policy_.short_since() + options_.wait) return fmt::format("fewer than {} are left", least);
  return fmt::format("fewer than {} were there for {} s (--min-wait)", least, seconds_of(options_.wait));
}

/// What happens at one moment is one thing to decide on.
void Restarter::decide_soon() {
  if (finished_ || std::exchange(deciding_, true)) return;
  loop_.defer(alive_.wrap([this] {
    deciding_ = false;
    decide();
  }));
}

void Restarter::decide() {
  using Act = RestartPolicy::Act;
  loop_.cancel(std::exchange(timer_, 0));
  while (!finished_) {
    const RestartPolicy::Decision decision = policy_.decide(loop_.now());
    tell_shortage();
    switch (decision.act) {
      case Act::wait:
        if (decision.until) timer_ = loop_.after(*decision.until - loop_.now(), [this] { decide(); });
        return;
      case Act::join:
        actions_.join(decision.ranks, doors());
        break;
      case Act::start_anew:
        told_.clear();
        actions_.say(fmt::format("starting anew, as a group of {}: {}", count_of(static_cast<std::uint32_t>(decision.ranks.size()), "rank"),
                                 list_ranks(decision.ranks)));
        actions_.start_anew(decision.ranks);
        break;
      case Act::stop:
        if (!policy_.goes_on())
          actions_.say(fmt::format("the job has come to its end, and ends {}, which {} not in the group", list_ranks(decision.ranks),
                                   decision.ranks.size() == 1 ? "is" : "are"));
        actions_.stop(decision.ranks);
        break;
      case Act::give_up:
        finish();
        return actions_.give_up(describe_lack());
      case Act::end:
        finish();
        return actions_.end();
    }
  }
}

}  // namespace ringlet::job
