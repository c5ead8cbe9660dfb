#include "tools/launch/hosts/hosts_launcher.hpp"

#include <filesystem>
#include <memory>

#include "tools/job/message_link.hpp"
#include "tools/launch/hosts/meeting_place.hpp"
#include "tools/launch/hosts/ssh_connection.hpp"
#include "tools/launch/job_runner.hpp"

namespace ringlet::launch {

namespace {

constexpr Duration kStartTime = Duration::seconds(60);

std::vector<job::Candidate> make_candidates(const HostsPlan& plan, const LaunchOptions& options) {
  std::vector<job::Candidate> candidates;
  for (const Host& host : plan.hosts) {
    job::Candidate& candidate = candidates.emplace_back();
    candidate.name = host.name();
    candidate.program = options.program;
    candidate.ranks = host.slots.value_or(1);
    candidate.directory = options.directory.empty() ? host.directory : options.directory;
    candidate.environment = plan.environment;
    candidate.environment.insert(candidate.environment.end(), host.environment.begin(), host.environment.end());
  }
  return candidates;
}

job::JobOptions make_options(const HostsPlan& plan, const LaunchOptions& options) {
  job::JobOptions job = options.job;
  job.from = own_host_name();
  std::error_code error;
  job.start.preferred_directory = std::filesystem::current_path(error).string();
  job.answer_time = kStartTime;
  job.choose_meeting = [&plan](const std::vector<job::Participant>& participants) { return choose_meeting(plan, participants); };
  return job;
}

}  // namespace

job::MeetingPoint choose_meeting(const HostsPlan& plan, const std::vector<job::Participant>& participants) {
  std::vector<ReachedHost> reached;
  for (const job::Participant& one : participants) reached.push_back({plan.hosts[one.machine], one.offer});
  // The user has said how the first host of all is reached, which may be lost.
  const bool is_said = plan.coordinator && participants.front().machine == 0;
  const Address meeting = is_said ? *plan.coordinator : Address{choose_meeting_host(reached), 0};
  job::BindPort listen = listen_for(meeting);
  if (listen.port == 0 && !is_loopback(meeting)) {
    listen.port = plan.ports.first;
    listen.last_port = plan.ports.last;
  }
  return {std::move(listen), meeting.host};
}

job::JobResult launch_on(const HostsPlan& plan, const LaunchOptions& options) {
  UvLoop loop;
  JobRunner runner(loop, {options.stdout_to_stderr, options.message_prefix});
  if (options.output_directory) runner.output().keep_logs(*options.output_directory, options.world_size);
  JobRunner::Hooks hooks;
  hooks.feeds_input = true;
  hooks.on_trace = options.on_trace;
  job::Job& job = runner.start(make_options(plan, options), make_candidates(plan, options), std::move(hooks));
  std::vector<std::unique_ptr<SshConnection>> connections;
  for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
    const auto on_done = [&loop, &job, i](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) return job.miss(i, link.status().text());
      job.reach(i, std::make_unique<job::MessageLink>(loop, std::move(link).value(), job::kPipeLimits));
    };
    connections.push_back(std::make_unique<SshConnection>(loop, plan.hosts[i], plan.ssh, options.helper_path, on_done));
  }
  return runner.run();
}

}  // namespace ringlet::launch
