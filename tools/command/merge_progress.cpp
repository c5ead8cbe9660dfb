#include "tools/command/merge_progress.hpp"

#include <fmt/format.h>

namespace ringlet::command {

trace::MergeWatch MergeProgress::watch() {
  return [this](std::uint64_t read_bytes, std::uint64_t all_bytes) { return go_on(read_bytes, all_bytes); };
}

bool MergeProgress::go_on(std::uint64_t read_bytes, std::uint64_t all_bytes) {
  if (line_.due()) line_.show(fmt::format("merging the trace, {} of {} MiB", read_bytes >> 20, all_bytes >> 20));
  return !signals_.came();
}

}  // namespace ringlet::command
