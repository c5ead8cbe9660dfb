#include "tools/command/job_list.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/base/printable.hpp"
#include "tools/job/job_result.hpp"

namespace ringlet::command {

namespace {

using agent::AgentEvent;
using Json = nlohmann::ordered_json;

std::string ranks_text(const job::JobView& job) {
  const int last = job.first_rank + job.ranks - 1;
  if (job.ranks == 1) return fmt::format("rank {} of {}", job.first_rank, job.world_size);
  return fmt::format("ranks {} to {} of {}", job.first_rank, last, job.world_size);
}

std::string now_text() { return fmt::format("{:%H:%M:%S}", fmt::localtime(std::time(nullptr))); }

std::string_view name_of(AgentEvent::Kind kind) {
  if (kind == AgentEvent::Kind::refused) return "refused";
  if (kind == AgentEvent::Kind::first_contact) return "first_contact";
  return kind == AgentEvent::Kind::job_started ? "job_started" : "job_ended";
}

}  // namespace

std::string event_line(const AgentEvent& event) {
  const job::JobView& job = event.job;
  if (event.kind == AgentEvent::Kind::refused) return printable(fmt::format("refused {}: {}", job.from, event.text));
  if (event.kind == AgentEvent::Kind::first_contact)
    return printable(
        fmt::format("first contact with {}: its key is {}; `ringlet machines` there shows whether that is so", job.from, event.text));
  const std::string what = fmt::format("job {:016x} of {} ({})", job.id, job.from, job.peer);
  if (event.kind == AgentEvent::Kind::job_started) return printable(fmt::format("{} started: {}, {}", what, job.program, ranks_text(job)));
  return printable(fmt::format("{} ended{}{}", what, event.text.empty() ? "" : ": ", event.text));
}

Json event_json(const AgentEvent& event) {
  const job::JobView& job = event.job;
  Json json{{"event", name_of(event.kind)}};
  if (event.kind == AgentEvent::Kind::refused) {
    json.update({{"program", job.program}, {"from", job.from}, {"reason", event.text}});
    return json;
  }
  if (event.kind == AgentEvent::Kind::first_contact) {
    json.update({{"from", job.from}, {"fingerprint", event.text}});
    return json;
  }
  json["job"] = {{"id", fmt::format("{:016x}", job.id)},
                 {"program", job.program},
                 {"from", job.from},
                 {"address", job.peer},
                 {"first_rank", job.first_rank},
                 {"ranks", job.ranks},
                 {"world_size", job.world_size},
                 {"time", std::time(nullptr)}};
  if (event.kind == AgentEvent::Kind::job_ended) json["reason"] = event.text;
  return json;
}

void JobList::take(const AgentEvent& event) {
  if (event.kind == AgentEvent::Kind::refused || event.kind == AgentEvent::Kind::first_contact)
    last_notice_ = fmt::format("{} {}", now_text(), event_line(event));
  else if (event.kind == AgentEvent::Kind::job_started)
    jobs_.push_back({event.job, now_text()});
  else
    std::erase_if(jobs_, [&](const ShownJob& job) { return job.view.id == event.job.id && job.view.first_rank == event.job.first_rank; });
}

std::vector<std::string> JobList::lines() const {
  std::vector<std::string> lines;
  for (const ShownJob& job : jobs_)
    lines.push_back(printable(
        fmt::format("since {}: {} for {} ({}), {}", job.since, job.view.program, job.view.from, job.view.peer, ranks_text(job.view))));
  if (!last_notice_.empty()) lines.push_back(last_notice_);
  return lines;
}

}  // namespace ringlet::command
