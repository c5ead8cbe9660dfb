#include "tools/command/job_trace.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

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

void JobTrace::finish(const std::vector<job::RankExit>& ranks) {
  if (!parts_) return;
  std::string lacking;
  for (const job::RankExit& rank : ranks)
    if (rank.pid != 0 && !parts_->has(static_cast<std::uint32_t>(rank.rank)))
      lacking += fmt::format("{}{}{}", lacking.empty() ? "" : ", ", rank.rank, rank.machine.empty() ? "" : " on " + rank.machine);
  constexpr const char* kReasons =
      "its program did not come to ringlet::init(), or what started it closed the files that it inherited, its disk was full, or its "
      "machine was lost or has an older `ringlet`";
  if (parts_->empty()) {
    if (!lacking.empty()) tell(fmt::format("there is no trace: nothing came of any rank; {}", kReasons));
    return;
  }
  try {
    const trace::Merged merged = parts_->merge();
    for (const std::string& part : merged.unaligned)
      tell(fmt::format("the trace has the times of '{}' as they were, since it was not compared with another clock", part));
    if (merged.dropped > 0) tell(fmt::format("the trace lacks {} events, as the ranks have said", merged.dropped));
    if (!lacking.empty()) tell(fmt::format("the trace lacks rank {}: {}", lacking, kReasons));
    tell(fmt::format("the trace is in '{}': {} events of {} {}; open it in https://ui.perfetto.dev, or sum it up: ringlet trace summary {}",
                     file_, merged.events, merged.parts, merged.parts == 1 ? "process" : "processes", file_));
  } catch (const std::exception& error) {
    tell(fmt::format("the trace '{0}' was not put together: {1}; parts of it stay beside it, and `ringlet trace merge {0}` tries again",
                     file_, error.what()));
  }
}

}  // namespace ringlet::command
