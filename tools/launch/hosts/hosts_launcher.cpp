#include "tools/launch/hosts/hosts_launcher.hpp"

#include <filesystem>
#include <memory>

#include "tools/job/message_link.hpp"
#include "tools/launch/hosts/meeting_place.hpp"
#include "tools/launch/hosts/ssh_connection.hpp"
#include "tools/launch/job_runner.hpp"
#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

namespace {

constexpr Duration kStartTime = Duration::seconds(60);

void add(std::vector<job::Variable>& to, const std::vector<std::pair<std::string, std::string>>& from) {
  for (const auto& [name, value] : from) to.push_back({name, value});
}

std::vector<job::Candidate> make_candidates(const HostsPlan& plan, const LaunchOptions& options) {
  std::vector<job::Candidate> candidates;
  for (const Host& host : plan.hosts) {
    job::Candidate& candidate = candidates.emplace_back();
    candidate.name = host.name();
    candidate.program = options.command.front();
    candidate.ranks = host.slots.value_or(1);
    candidate.directory = options.working_directory.value_or(host.working_directory.value_or(""));
    add(candidate.environment, plan.environment);
    add(candidate.environment, host.environment);
  }
  return candidates;
}

job::JobOptions make_options(const HostsPlan& plan, const LaunchOptions& options) {
  job::JobOptions job = make_job_options(options);
  job.from = own_host_name();
  std::error_code error;
  job.start.preferred_directory = std::filesystem::current_path(error).string();
  job.answer_time = kStartTime;
  job.choose_meeting = [&plan](const std::vector<job::Offer>& offers) {
    std::vector<ReachedHost> reached;
    for (std::size_t i = 0; i < offers.size(); ++i) reached.push_back({plan.hosts[i], offers[i]});
    const std::string host = plan.coordinator_host.value_or(choose_meeting_host(reached));
    const ListenAt listen_at = listen_for(host, plan.coordinator_port);
    return job::MeetingPoint{listen_at.host, listen_at.port, host};
  };
  return job;
}

job::JobResult run_on_hosts(const HostsPlan& plan, const LaunchOptions& options) {
  UvLoop loop;
  JobRunner runner(loop, {options.prefix, options.stdout_to_stderr, options.message_prefix});
  std::vector<job::Candidate> candidates = make_candidates(plan, options);
  int ranks = 0;
  for (const job::Candidate& candidate : candidates) ranks += *candidate.ranks;
  if (options.output_directory) runner.output().keep_logs(*options.output_directory, ranks);
  JobRunner::Hooks hooks;
  hooks.feeds_input = true;
  job::Job& job = runner.start(make_options(plan, options), std::move(candidates), std::move(hooks));
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

}  // namespace

job::JobResult launch_on(const HostsPlan& plan, const LaunchOptions& options) {
  try {
    return run_on_hosts(plan, options);
  } catch (const LaunchError& error) {
    job::JobResult result;
    result.exit_code = error.exit_code();
    result.error = error.what();
    return result;
  }
}

}  // namespace ringlet::launch
