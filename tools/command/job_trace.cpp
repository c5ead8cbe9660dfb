#include "tools/command/job_trace.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "tools/command/merge_progress.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

void add_to(std::string& list, const std::string& entry) { list += (list.empty() ? "" : ", ") + entry; }

/// "rank 2 on attic", or "an earlier process of rank 2 on attic".
std::string describe(const trace::RankProcess& process, const std::vector<job::RankExit>& ranks) {
  const job::RankExit& last = ranks.at(process.rank);
  const bool is_last = process.restarts == static_cast<std::uint32_t>(last.restarts);
  return fmt::format("{}rank {}{}", is_last ? "" : "an earlier process of ", process.rank,
                     last.machine.empty() ? "" : " on " + last.machine);
}

std::string what_lacks(const std::string& name, std::uint64_t bytes) {
  return bytes == 0 ? "all of " + name : fmt::format("the end of {}, behind its first {} KiB", name, bytes >> 10);
}

/// All that were started.
std::vector<trace::RankProcess> processes_of(const job::RankExit& rank) {
  std::vector<trace::RankProcess> all;
  const int started = rank.restarts + (rank.pid != 0 ? 1 : 0);
  for (int restarts = 0; restarts < started; ++restarts)
    all.push_back({static_cast<std::uint32_t>(rank.rank), static_cast<std::uint32_t>(restarts)});
  return all;
}

}  // namespace

std::optional<std::string> open_trace_parts(const std::string& file, std::unique_ptr<trace::PartFiles>& parts) {
  if (file.empty()) return std::nullopt;
  try {
    parts = std::make_unique<trace::PartFiles>(file);
  } catch (const std::runtime_error& error) {
    return fmt::format("--trace: {}", error.what());
  }
  return std::nullopt;
}

std::function<void(const job::TracePiece&)> JobTrace::taker() {
  if (!parts_) return {};
  return [this](const job::TracePiece& piece) { parts_->add({piece.rank, piece.restarts}, piece.data); };
}

void JobTrace::tell(const std::string& text) const { launch::print_error("ringlet {}: {}\n", subcommand_, text); }

bool JobTrace::tell_missing(const job::JobResult& result) const {
  std::string silent, late, unwritten, why_unwritten;
  parts_->close();
  for (const job::RankExit& rank : result.ranks)
    for (const trace::RankProcess& process : processes_of(rank)) {
      const std::string name = describe(process, result.ranks);
      const std::uint64_t bytes = parts_->bytes_of(process);
      const bool is_whole = parts_->is_whole(process);
      if (const std::string error = parts_->error_of(process); !error.empty()) {
        add_to(unwritten, what_lacks(name, bytes));
        if (why_unwritten.empty()) why_unwritten = error;
      } else if (bytes > 0 && !is_whole)
        add_to(late, what_lacks(name, bytes));
      else if (!is_whole && (result.traces_given_up || rank.lost))
        add_to(late, "all of " + name);
      else if (!is_whole || (bytes == 0 && process.restarts == static_cast<std::uint32_t>(rank.restarts)))
        add_to(silent, name);
    }
  constexpr const char* kReasons =
      "its program did not come to ringlet::init(), or what started it closed the files that it inherited, its disk was full, or its "
      "machine was lost or has an older `ringlet`";
  if (!unwritten.empty()) tell(fmt::format("the trace lacks {}: {}", unwritten, why_unwritten));
  if (!late.empty())
    tell(fmt::format("the trace lacks {}, which had not come when {}", late,
                     result.traces_given_up ? "a signal ended the wait for it" : "the machine was lost"));
  if (!silent.empty() && !parts_->empty()) tell(fmt::format("the trace lacks {}: {}", silent, kReasons));
  if (parts_->empty() && !(late.empty() && silent.empty()))
    tell(fmt::format("there is no trace: nothing came of any rank{}", silent.empty() ? "" : fmt::format("; {}", kReasons)));
  return !parts_->empty();
}

void JobTrace::merge(const job::JobResult& result) {
  const std::vector<trace::RankProcess> parts = parts_->processes();
  MergeProgress progress(subcommand_);
  const trace::Merged merged = parts_->merge(progress.watch());
  progress.end();
  for (const std::size_t part : merged.unaligned)
    tell(fmt::format("the trace has the times of {} as they were, since they were not compared with another clock",
                     describe(parts[part], result.ranks)));
  std::string endless;
  for (const std::size_t part : merged.endless)
    if (parts_->is_whole(parts[part]) && parts_->error_of(parts[part]).empty()) add_to(endless, describe(parts[part], result.ranks));
  if (!endless.empty()) tell(fmt::format("the trace of {} ends early: its process was killed, or could not write on", endless));
  if (merged.dropped > 0) tell(fmt::format("the trace lacks {} events, as the ranks have said", merged.dropped));
  tell(
      fmt::format("the trace is in '{0}': {1} events of {2} {3}; open it in https://ui.perfetto.dev, or sum it up: ringlet trace "
                  "summary '{0}'",
                  parts_->file(), merged.events, parts.size(), parts.size() == 1 ? "process" : "processes"));
}

void JobTrace::finish(const job::JobResult& result) {
  if (!parts_ || !tell_missing(result)) return;
  try {
    merge(result);
  } catch (const std::exception& error) {
    tell(fmt::format("the trace '{0}' was not put together: {1}{2}", parts_->file(), error.what(),
                     parts_->processes().empty() ? ""
                                                 : fmt::format("; its parts, as far as they are written, stay beside it, and `ringlet "
                                                               "trace merge '{}'` tries again",
                                                               parts_->file())));
  }
}

}  // namespace ringlet::command
