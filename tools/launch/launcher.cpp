#include "tools/launch/launcher.hpp"

#include <optional>
#include <string>
#include <utility>

#include "tools/job/local_channel.hpp"
#include "tools/launch/guest_list.hpp"
#include "tools/launch/job_runner.hpp"
#include "tools/launch/local_machine.hpp"
#include "tools/launch/pipe.hpp"
#include "tools/launch/pipe_reader.hpp"

namespace ringlet::launch {

namespace {

/// Tells of the guests that wait at rank 0.
class GuestWatch {
 public:
  GuestWatch(UvLoop& loop, int guests, RankOutput& output) : guests_(guests) {
    PipeEnds ends = open_socket_pair();
    writer = std::move(ends.write_end);
    const auto on_bytes = [this, &output](std::string_view bytes) {
      for (const std::string& sentence : guests_.feed(bytes)) output.say(sentence);
    };
    reader_.emplace(loop.uv(), std::move(ends.read_end), on_bytes, [] {});
  }
  UniqueFd writer;  // rank 0 inherits it

 private:
  GuestList guests_;
  std::optional<PipeReader> reader_;
};

/// How ranks of this machine reach a socket that listens on `host`, which may stand for all addresses.
std::string host_here(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

}  // namespace

job::JobResult launch(const LaunchOptions& options) {
  UvLoop loop;
  JobRunner runner(loop, {options.stdout_to_stderr, options.message_prefix});
  if (options.output_directory) runner.output().keep_logs(*options.output_directory, options.world_size);
  std::optional<GuestWatch> guests;
  CrewSettings settings{options.helper_path, true, options.guests, options.listen_at.host, {}};
  auto& with_page = options.page_socket ? settings.inherited_by_all : settings.inherited;
  if (options.page_fd) with_page.push_back({"RINGLET_PAGE_FD", *options.page_fd});
  if (options.page_socket) with_page.push_back({"RINGLET_PAGE_SOCKET_FD", *options.page_socket});
  if (options.guests > 0)
    settings.inherited.push_back({"RINGLET_PRESENCE_FD", guests.emplace(loop, options.guests, runner.output()).writer.get(), true});

  job::JobOptions job = options.job;
  job.answer_time.reset();  // this machine answers, however busy it is
  job.choose_meeting = [&options](const std::vector<job::Participant>&) {
    // Where guests have a port of their own, the ranks, which are all here, meet at another one.
    const job::BindPort listen_at = options.page_socket ? job::BindPort{host_here(options.listen_at.host), 0} : options.listen_at;
    return job::MeetingPoint{listen_at, host_here(options.listen_at.host)};
  };
  job::Candidate here;
  here.program = options.program;
  here.ranks = options.world_size;
  here.directory = options.directory;
  JobRunner::Hooks hooks;
  hooks.on_listening = options.on_listening;
  hooks.on_trace = options.on_trace;
  hooks.on_started = [&guests] {
    if (guests) guests->writer.reset();
  };
  LocalMachine machine(loop, std::move(settings));
  auto [ours, theirs] = job::make_local_channels(loop);
  const job::MachineSession session(loop, std::move(theirs), machine, {.on_over = [] {}});
  runner.start(std::move(job), {std::move(here)}, std::move(hooks)).reach(0, std::move(ours));
  return runner.run();
}

}  // namespace ringlet::launch
