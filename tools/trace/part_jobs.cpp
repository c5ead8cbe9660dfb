#include "tools/trace/part_jobs.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/trace/trace_part.hpp"
#include "tools/trace/trace_reader.hpp"

namespace ringlet::trace {

PartJob job_of_part(const std::string& part) {
  PartJob found;
  TraceReader reader(part);
  while (found.job.empty()) {
    const auto line = reader.next();
    if (!line) break;
    if (!may_tell_of_clock(*line)) continue;
    const nlohmann::ordered_json event = reader.event();
    if (is_metadata(event, "ringlet_trace")) found.began_ms = number_in(event["args"], "began_ms");
    if (event["ph"] == "i" && event.contains("args")) found.job = text_in(event["args"], "job");
  }
  return found;
}

PartsByJob sort_by_job(const std::vector<std::string>& parts) {
  std::vector<PartJob> jobs;
  std::map<std::string, std::int64_t> last_began;
  for (const std::string& part : parts) {
    const PartJob& told = jobs.emplace_back(job_of_part(part));
    if (told.job.empty()) continue;
    const auto [job, is_new] = last_began.try_emplace(told.job, told.began_ms);
    job->second = std::max(job->second, told.began_ms);
  }
  // Of jobs that began at the same time the first part's counts.
  const PartJob* newest = nullptr;
  for (const PartJob& one : jobs)
    if (!one.job.empty() && (newest == nullptr || last_began[one.job] > last_began[newest->job])) newest = &one;
  PartsByJob sorted;
  for (std::size_t i = 0; i < parts.size(); ++i)
    (newest == nullptr || jobs[i].job == newest->job ? sorted.newest
     : jobs[i].job.empty()                           ? sorted.without
                                                     : sorted.others)
        .push_back(parts[i]);
  return sorted;
}

}  // namespace ringlet::trace
