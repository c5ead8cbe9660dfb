#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.hpp"

namespace ringlet::job {

/// Decides which ranks of an elastic job are started again, when, and how: a rank that has failed joins those that are members of the
/// group; where none is left, all start anew together. It only reckons: the caller tells it what happens and when, and does what it
/// decides. Ranks are numbered from 0 as they are added, and keep their numbers for the whole job.
class RestartPolicy {
 public:
  struct Options {
    int least = 1;                                // with fewer ranks in the group the job waits, and then ends
    int limit = 0;                                // how often each rank is started again after a failure
    Duration wait = Duration::seconds(600);       // for so long, if there may be enough again
    bool may_grow = false;                        // others may come for ranks that were lost
    Duration first_pause = Duration::seconds(1);  // before a rank is started again; twice as long after each further failure
    Duration longest_pause = Duration::seconds(30);
    Duration settled_after = Duration::seconds(60);  // a rank that ran for so long begins again with the first pause
    Duration left_out_time = Duration::seconds(10);  // for so long a rank that is left out is waited for, once all others have ended
  };
  /// The group that a rank is in, or was when it last told.
  struct Group {
    std::uint64_t lineage = 0;
    std::uint32_t epoch = 0;  // of that lineage
  };
  enum class Act {
    wait,        // until `until`, or something happens
    join,        // start `ranks`, which join the others
    start_anew,  // start `ranks`, which meet as a new group; no other rank runs
    stop,        // end the processes of `ranks`, which are of no use
    give_up,     // too few ranks can be had, or were there for too long: end the job
    end,         // nothing runs, and nothing will
  };
  struct Decision {
    Act act = Act::wait;
    std::vector<int> ranks{};
    std::optional<Instant> until{};
  };

  explicit RestartPolicy(Options options) : options_(options) {}

  /// A further rank has been started, to meet the others.
  void add(Instant now);
  /// A further rank can be started.
  void add_waiting(Instant now);
  /// The rank is in this group.
  void note_member(int rank, Group group);
  /// Its process has ended. Returns whether it may be started again.
  bool note_exit(int rank, bool well, Instant now);
  /// It can be neither asked nor started any more: its machine is gone.
  void note_lost(int rank);

  /// What is to be done next. It is taken as done, except for `stop`, which the ranks' exits follow; so the caller asks again until the
  /// answer is to wait, to give up, or the end.
  Decision decide(Instant now);

  bool runs(int rank) const { return runs(at(rank)); }
  /// Runs, or will.
  bool counts(int rank) const { return runs(at(rank)) || at(rank).state == State::waiting; }
  int failures(int rank) const { return at(rank).failures; }
  int ranks() const { return static_cast<int>(ranks_.size()); }
  /// How many run, or will.
  int left() const;
  /// How many ranks the group has now.
  int members() const { return count(State::member); }
  /// Since when the group has had fewer ranks than it needs, as of the last decision; unset: it has enough.
  std::optional<Instant> short_since() const { return short_since_; }
  /// Whether further ranks are of use: none has ended well.
  bool goes_on() const { return count(State::well) == 0; }

 private:
  enum class State {
    meeting,  // runs, and was started together with the others
    joining,  // runs, and knocks at the doors of others
    member,
    waiting,  // is to be started again
    gone,     // failed for the last time, or lost
    well,     // has ended well
  };
  struct Rank {
    State state = State::meeting;
    Group group{};  // of a member
    Instant started{};
    Instant due{};            // while it waits
    int failures = 0;         // of its processes, for which the limit is
    int failures_in_row = 0;  // since it ran for long enough
    bool stopping = false;    // was told to end, which is no failure
  };

  static bool runs(const Rank& rank) { return rank.state == State::meeting || rank.state == State::joining || rank.state == State::member; }
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  int count(State state) const;
  std::vector<int> all(State state) const;
  std::vector<int> stop(std::vector<int> ranks);
  void start(const std::vector<int>& ranks, State state, Instant now);
  Duration pause_of(const Rank& rank) const;
  bool is_short() const;
  bool may_have_enough() const;
  /// Members that a later epoch of their group is without: stopped, or cut off from the others.
  std::vector<int> left_out() const;
  Decision decide_at_end(Instant now);
  Decision decide_without_members(Instant now);
  Decision decide_with_members(Instant now);

  const Options options_;
  std::vector<Rank> ranks_;
  int missing_ = 0;      // were lost with their machines, and nobody has come for them
  bool broken_ = false;  // a rank failed before it had met the others
  std::optional<Instant> short_since_, over_since_;
};

}  // namespace ringlet::job
