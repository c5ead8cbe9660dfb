#include "tools/agent/surveyor.hpp"

#include <utility>

namespace ringlet::agent {

Surveyor::Surveyor(EventLoop& loop, Network& network, Authenticator& authenticator, ProbeEnds ends, FindMachine find_machine)
    : loop_(loop), network_(network), authenticator_(authenticator), ends_(std::move(ends)), find_machine_(std::move(find_machine)) {}

void Surveyor::measure(const job::PathSurvey& survey, OnDone on_done) {
  tasks_.push_back({survey.instances, std::move(on_done), {}, 0, {}, 0});
  if (tasks_.size() == 1) go_on();
}

void Surveyor::go_on() {
  while (!tasks_.empty()) {
    Task& task = tasks_.front();
    if (task.at == task.instances.size()) {
      const Task done = std::move(task);
      tasks_.pop_front();
      done.on_done(done.found);
      continue;
    }
    if (task.next_address == 0) task.addresses = find_machine_(task.instances[task.at]);
    if (task.addresses.empty()) {
      note({task.instances[task.at], 0, 0, kNotHeard, 0, ""});
      continue;
    }
    probe_ = std::make_unique<PathProbe>(loop_, network_, authenticator_, task.addresses[task.next_address++], ends_,
                                         [this](const PathQuality& quality) { on_measured(quality); });
    return;
  }
}

void Surveyor::on_measured(const PathQuality& quality) {
  probe_.reset();
  Task& task = tasks_.front();
  if (quality.status.ok())
    note({task.instances[task.at], static_cast<std::uint64_t>(quality.round_trip->nanoseconds),
          static_cast<std::uint64_t>(quality.bytes_per_second), "", quality.rank_port, quality.rank_port_status.text()});
  else if (task.next_address == task.addresses.size())
    note({task.instances[task.at], 0, 0, quality.stalled ? "large messages are lost" : quality.status.text(), 0, ""});
  go_on();
}

void Surveyor::note(job::SurveyedPath path) {
  Task& task = tasks_.front();
  task.found.paths.push_back(std::move(path));
  ++task.at;
  task.next_address = 0;
}

}  // namespace ringlet::agent
