#include "output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <ringlet/error.hpp>
#include <system_error>

#include "counted.hpp"

namespace train_text {

std::string change_text(int step, int ranks, int joined, int ranks_before, double pause_seconds, std::string_view cause) {
  const double pause_ms = pause_seconds * 1e3;
  if (cause.empty())
    return fmt::format("step {}: {} go on, {} of them new, after {:.0f} ms", step, counted(ranks, "rank"), joined, pause_ms);
  return fmt::format("step {}: {} of {} ranks go on, after {:.0f} ms: {}", step, ranks, ranks_before, pause_ms, cause);
}

void print_report(const Report& report, bool as_json, std::string_view sample) {
  fmt::print("{}\n", as_json ? json_line(report) : summary(report, sample));
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
}

void await_report(ringlet::Group group) {
  if (group.guests() > 0) return;
  try {
    group.barrier();
  } catch (const ringlet::Error&) {
    // The training is done, and whoever is lost now is needed no more.
  }
}

}  // namespace train_text
