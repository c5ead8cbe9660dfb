#include "tools/job/job_traces.hpp"

#include <fmt/format.h>

#include <utility>

namespace ringlet::job {

namespace {

/// The user is told of traces that take longer.
constexpr Duration kQuietTransfer = Duration::seconds(3);
/// The time that machines have to say that they have no more.
constexpr Duration kGiveUpTime = Duration::seconds(1);

}  // namespace

void JobTraces::finish() { loop_.cancel(std::exchange(timer_, 0)); }

void JobTraces::note_exit() {
  if (timer_ == 0 && hooks_.ranks_over()) timer_ = loop_.after(kQuietTransfer, [this] { tell(); });
}

void JobTraces::tell() const {
  std::string from;
  for (const JobMachine& machine : machines_)
    if (machine.channel && !machine.over && !machine.candidate.name.empty()) from += (from.empty() ? "" : ", ") + machine.candidate.name;
  if (!from.empty() && hooks_.ranks_over())
    hooks_.tell_progress(
        fmt::format("the ranks have ended, and their traces have not all come from {} yet; Ctrl-C leaves out the rest", from));
}

void JobTraces::give_up() {
  if (std::exchange(given_up_, true)) return leave_machines();
  for (const JobMachine& machine : machines_)
    if (machine.channel && !machine.over) machine.channel->send(TraceTaken{true});
  finish();
  timer_ = loop_.after(kGiveUpTime, [this] { leave_machines(); });
}

/// Machines that the network holds up end by themselves. This one answers, and may be ending what its ranks left behind.
void JobTraces::leave_machines() {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].channel && !machines_[i].over && !machines_[i].candidate.name.empty()) left.push_back(i);
  hooks_.leave(left);
}

}  // namespace ringlet::job
