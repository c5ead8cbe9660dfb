#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/job/job_result.hpp"
#include "tools/job/machine_choice.hpp"
#include "tools/job/message_channel.hpp"

namespace ringlet::job {

/// A machine that may take part.
struct Candidate {
  std::string name{};                   // empty: the one that runs the job
  std::string program{};                // its path there
  std::string meeting_host{};           // its address as the other machines reach it
  std::optional<int> ranks{};           // how many it gets; unset: as RankWish has it
  std::string directory{};              // empty: where its agent was started, or the preferred directory
  std::vector<Variable> environment{};  // before that of the job, which holds
};

/// A machine of a job, and how far it is.
struct JobMachine {
  Candidate candidate;
  std::unique_ptr<MessageChannel> channel;  // none: not reached, takes no part, or is lost
  bool answered = false;                    // takes part or does not
  bool late = false;                        // has come while the job runs
  std::optional<Offer> offer;
  int first_rank = 0, ranks = 0;
  bool started = false;
  bool refused = false;                       // takes no part any more
  bool over = false;                          // nothing runs there, or it is lost
  std::deque<std::vector<int>> restarting{};  // the ranks of each RestartRanks that it has not answered
};

/// Where the others reach this door, whose rank does not know that they reach its machine as `host`.
std::string reach_door(const std::string& door, const std::string& host);

/// The machines of a job, by their numbers, and how the ranks of each stand.
class JobMachines {
 public:
  JobMachine& add(Candidate candidate);
  /// A machine that has come while the job runs. Returns its number.
  std::size_t add_late(Candidate candidate);
  /// Whether the machine takes no part any more, and has not refused.
  bool may_return(std::size_t index) const;
  JobMachine& operator[](std::size_t index) { return machines_[index]; }
  const JobMachine& operator[](std::size_t index) const { return machines_[index]; }
  std::size_t size() const { return machines_.size(); }
  auto begin() { return machines_.begin(); }
  auto end() { return machines_.end(); }
  auto begin() const { return machines_.begin(); }
  auto end() const { return machines_.end(); }

  /// The machines that would take part.
  std::vector<std::size_t> willing() const;
  std::vector<Place> places_of(const std::vector<std::size_t>& machines) const;
  /// The order for this machine: `start`, which is the same for all, with what is its own. `prefix`: rank_prefix() stands before each line.
  StartRanks make_start(std::size_t index, StartRanks start, bool prefix) const;

  const std::vector<RankExit>& ranks() const { return ranks_; }
  int rank_count() const { return static_cast<int>(ranks_.size()); }
  /// Gives the machine the next ranks.
  void give_ranks(std::size_t index, int count);
  /// Returns null where the rank is not this machine's.
  RankExit* find_rank(std::size_t index, std::uint32_t rank);
  /// Returns false where the machine has started others than it was asked to.
  bool note_started(std::size_t index, const RanksStarted& started);
  /// Those of its ranks that had not ended are lost.
  void lose(std::size_t index);

  /// All ranks of this machine.
  std::vector<int> ranks_of(std::size_t index) const;
  /// Of an elastic job: has ranks that have ended started again. `order` has no ranks yet.
  void restart(std::size_t index, const std::vector<int>& ranks, RestartRanks order);
  /// Has these ranks ended by `order`, wherever they are.
  void stop(const std::vector<int>& ranks, Order order);
  /// Returns the ranks of each machine that is there.
  std::map<std::size_t, std::vector<int>> by_machine(const std::vector<int>& ranks) const;

 private:
  std::deque<JobMachine> machines_;
  std::vector<RankExit> ranks_;
};

}  // namespace ringlet::job
