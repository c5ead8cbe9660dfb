#include "tools/command/job_trace.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "tools/command/merge_progress.hpp"

namespace ringlet::command {

std::optional<std::string> find_trace_mistake(const std::string& file) {
  if (file.empty()) return std::nullopt;
  const std::string obstacle = trace::find_obstacle(file);
  if (obstacle.empty()) return std::nullopt;
  return fmt::format("--trace {}: it cannot be written: {}", file, obstacle);
}

JobTrace::JobTrace(std::string subcommand, const std::string& file) : subcommand_(std::move(subcommand)), file_(file) {
  if (!file.empty()) parts_.emplace(file);
}

std::function<void(const job::TracePiece&)> JobTrace::taker() {
  if (!parts_) return {};
  return [this](const job::TracePiece& piece) { parts_->add(piece.rank, piece.restarts, piece.data); };
}

// Where stderr takes no more, the job's exit code still counts.
void JobTrace::tell(const std::string& text) const {
  const std::string line = fmt::format("ringlet {}: {}\n", subcommand_, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool JobTrace::tell_lacks(const job::JobResult& result) const {
  std::string silent, late;
  const auto add = [](std::string& list, const std::string& entry) { list += (list.empty() ? "" : ", ") + entry; };
  for (const job::RankExit& exit : result.ranks) {
    if (exit.pid == 0) continue;
    const auto rank = static_cast<std::uint32_t>(exit.rank);
    const std::string name = fmt::format("{}{}", rank, exit.machine.empty() ? "" : " on " + exit.machine);
    for (std::uint32_t restarts = 0; restarts < static_cast<std::uint32_t>(exit.restarts); ++restarts)
      if (parts_->bytes_of(rank, restarts) > 0 && !parts_->is_whole(rank, restarts))
        add(late, fmt::format("the end of an earlier process of rank {}", name));
    const auto last = static_cast<std::uint32_t>(exit.restarts);
    const std::uint64_t bytes = parts_->bytes_of(rank, last);
    if (bytes > 0 && !parts_->is_whole(rank, last))
      add(late, fmt::format("the end of rank {}, behind its first {} KiB", name, bytes >> 10));
    else if (!parts_->is_whole(rank, last) && (result.traces_given_up || exit.lost))
      add(late, fmt::format("all of rank {}", name));
    else if (!parts_->has(rank))
      add(silent, name);
  }
  constexpr const char* kReasons =
      "its program did not come to ringlet::init(), or what started it closed the files that it inherited, its disk was full, or its "
      "machine was lost or has an older `ringlet`";
  if (!late.empty())
    tell(fmt::format("the trace lacks {}, which had not come when {}", late,
                     result.traces_given_up ? "a signal ended the wait for it" : "the machine was lost"));
  if (parts_->empty() && !silent.empty()) tell(fmt::format("there is no trace: nothing came of any rank; {}", kReasons));
  if (!parts_->empty() && !silent.empty()) tell(fmt::format("the trace lacks rank {}: {}", silent, kReasons));
  return !parts_->empty();
}

void JobTrace::finish(const job::JobResult& result) {
  if (!parts_ || !tell_lacks(result)) return;
  try {
    MergeProgress progress(subcommand_);
    const trace::Merged merged = parts_->merge(progress.watch());
    progress.end();
    for (const std::string& part : merged.unaligned)
      tell(fmt::format("the trace has the times of '{}' as they were, since it was not compared with another clock", part));
    if (merged.dropped > 0) tell(fmt::format("the trace lacks {} events, as the ranks have said", merged.dropped));
    tell(fmt::format("the trace is in '{}': {} events of {} {}; open it in https://ui.perfetto.dev, or sum it up: ringlet trace summary {}",
                     file_, merged.events, merged.parts, merged.parts == 1 ? "process" : "processes", file_));
  } catch (const std::exception& error) {
    tell(fmt::format("the trace '{0}' was not put together: {1}; parts of it stay beside it, and `ringlet trace merge {0}` tries again",
                     file_, error.what()));
  }
}

}  // namespace ringlet::command
