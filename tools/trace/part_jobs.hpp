#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::trace {

/// Which job wrote a part, as the part says.
struct PartJob {
  std::string job;            // alike for all ranks of a job, also for those that joined it later; empty: its process came into no group
  std::int64_t began_ms = 0;  // when the process began to write, by its machine's calendar
};

/// Reads as far as the part's first group. Throws `std::runtime_error` where the file cannot be read, or is no part of a trace.
PartJob job_of_part(const std::string& part);

/// Parts in their order, by their jobs.
struct PartsByJob {
  std::vector<std::string> newest{};   // of the job of which a process began last
  std::vector<std::string> others{};   // of other jobs
  std::vector<std::string> without{};  // of processes that came into no group; where no part is of a job, all are in `newest` instead
};

/// Throws as job_of_part().
PartsByJob sort_by_job(const std::vector<std::string>& parts);

}  // namespace ringlet::trace
