#include "tools/job/job_options.hpp"

namespace ringlet::job {

MeetingPoint choose_meeting(const JobOptions& options, const JobMachines& machines, const std::vector<std::size_t>& meeting) {
  if (options.choose_meeting) {
    std::vector<Participant> participants;
    for (const std::size_t i : meeting) participants.push_back({i, *machines[i].offer});
    return options.choose_meeting(participants);
  }
  if (meeting.size() == 1 && !options.most) return {{"127.0.0.1", 0}, "127.0.0.1"};
  const std::string& host = machines[meeting.front()].candidate.meeting_host;
  return {{host.find(':') == std::string::npos ? "0.0.0.0" : "::", 0}, host};
}

std::string reached_as(const JobOptions& options, const JobMachines& machines, std::size_t index) {
  if (!options.choose_meeting) return machines[index].candidate.meeting_host;
  std::vector<std::size_t> all{index};
  for (std::size_t i = 0; i < machines.size(); ++i)
    if (i != index && machines[i].channel && machines[i].ranks > 0) all.push_back(i);
  return choose_meeting(options, machines, all).reached_as;
}

}  // namespace ringlet::job
