#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.hpp"
#include "tools/job/end_policy.hpp"
#include "tools/job/job_machines.hpp"
#include "tools/job/machine_choice.hpp"
#include "tools/job/messages.hpp"

namespace ringlet::job {

/// As shells say that a program may not be run.
inline constexpr int kNotAllowed = 126;

/// Where rank 0's machine listens for the others, and how they reach it.
struct MeetingPoint {
  BindPort listen;  // port 0: any that is free
  std::string reached_as;
};

/// A machine that takes part, by its number, and its offer.
struct Participant {
  std::size_t machine = 0;
  Offer offer;
};

/// The program's arguments and limits.
struct JobOptions {
  std::string version{}, group{}, from{};
  StartRanks start{};  // the order to start, as far as it is the same for all machines
  RankWish wish{};
  int at_least = 1;            // machines
  std::optional<int> most{};   // ranks of an elastic job, whose machines may come later
  bool every_machine = false;  // a machine that does not take part is a failure
  bool prefix = true;          // rank_prefix() stands before each line
  bool quiet = false;          // nobody is told how ranks of an elastic job come and go
  EndPolicy::Options end{};
  /// Bounds the time from the question whether a machine would run the program to its answer, and that from there to the start of all
  /// ranks. Unset: there is no bound.
  std::optional<Duration> answer_time = Duration::seconds(10);
  /// Once enough machines have answered, the others have so long after the last answer, unless each is needed (`every_machine`). Unset: as
  /// `answer_time` says.
  std::optional<Duration> straggler_time{};
  /// Gets machines that take part, with the one where the ranks are to meet first. Unset: they meet at its meeting_host.
  std::function<MeetingPoint(const std::vector<Participant>&)> choose_meeting{};
  /// Proves in the question who asks, for this channel. Unset: the way to the machines is proof enough, as ssh is.
  std::function<void(Hail&, const LinkBinding&)> introduce{};
  /// Says in a sentence why the machine that made the offer on this channel is not the candidate, or may not take part; nothing where all
  /// is well. It is asked again before ranks are started again there. Unset: as with `introduce`.
  std::function<std::optional<std::string>(const Candidate&, const Offer&, const LinkBinding&)> check_identity{};
};

/// Where the ranks of these machines meet: at the first of them.
MeetingPoint choose_meeting(const JobOptions& options, const JobMachines& machines, const std::vector<std::size_t>& meeting);
/// How ranks of other machines reach this one.
std::string reached_as(const JobOptions& options, const JobMachines& machines, std::size_t index);

}  // namespace ringlet::job
