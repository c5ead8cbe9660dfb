#include "tools/launch/hosts/hosts_launcher.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/address.hpp"
#include "tools/launch/hosts/meeting_place.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::launch {

namespace {

constexpr std::chrono::seconds kPatience{30};
/// How long a deputy may be silent when its ranks must be gone: longer than it waits for those that cannot even be killed.
constexpr std::chrono::seconds kEndPatience{6};

/// The widest says how far the ranks' lines are moved to the right.
std::vector<std::string> make_labels(const std::vector<RankExit>& exits) {
  std::vector<std::string> labels;
  const std::size_t digits = fmt::formatted_size("{}", exits.size() - 1);
  for (const RankExit& exit : exits) labels.push_back(fmt::format("{:>{}} {}", exit.rank, digits, exit.host));
  return labels;
}

}  // namespace

HostsLauncher::HostsLauncher(LaunchOptions options, HostsPlan plan) : options_(std::move(options)), plan_(std::move(plan)) {
  for (const Host& host : plan_.hosts) {
    Far& far = *fars_.emplace_back(std::make_unique<Far>());
    far.host = host;
    far.first_rank = static_cast<int>(exits_.size());
    far.count = host.slots.value_or(1);
    for (int i = 0; i < far.count; ++i) {
      RankExit& exit = exits_.emplace_back();
      exit.rank = far.first_rank + i;
      exit.host = host.name();
    }
  }
  options_.world_size = static_cast<int>(exits_.size());
  options_.labels = make_labels(exits_);
}

HostsLauncher::~HostsLauncher() = default;

LaunchResult HostsLauncher::run() {
  ::signal(SIGPIPE, SIG_IGN);
  Course::Actions actions;
  actions.stop = [this](int signal_number, std::chrono::milliseconds grace) { stop(signal_number, grace); };
  actions.send = [this](int signal_number) { send_to_all(encode_number(MessageKind::signal, signal_number)); };
  actions.give_up_output = [this] {
    const bool ended = std::all_of(fars_.begin(), fars_.end(), [](const auto& far) { return !far->link || far->link->ended(); });
    // Links are not read while the output is stuck; who asks again wants the end more than the output.
    if (output_ && (ended || (course_->stopping() && output_->congested()))) output_->discard();
    settle();
  };
  course_.emplace(loop_.get(), options_, std::move(actions));
  try {
    output_.emplace(loop_.get(), options_, [this](int error) { course_->on_output_lost(error); }, [this] { settle(); });
    connect();
  } catch (const LaunchError& error) {
    course_->fail(error.exit_code(), error.what());
    course_->stop(SIGTERM, {});
  }
  settle();
  while (!finished_) uv_run(loop_.get(), UV_RUN_ONCE);
  course_->finish();
  return course_->make_result(exits_);
}

void HostsLauncher::connect() {
  for (const auto& entry : fars_) {
    Far& far = *entry;
    DeputyLink::Events events;
    events.on_message = [this, &far](MessageKind kind, std::string_view body) { on_message(far, kind, body); };
    events.on_nonsense = [this, &far](const std::string& what) { give_up(far, 1, far.host.ssh + ": " + what); };
    events.on_end = [this, &far] { on_end(far); };
    far.link = std::make_unique<DeputyLink>(loop_.get(), deputy_command(far.host, plan_.ssh, options_.helper_path), std::move(events));
  }
  patience_timer_.start(kPatience, [this] {
    for (const auto& far : fars_)
      if (!far->hello && far->failure.empty())
        give_up(*far, 1,
                fmt::format("{}: no answer within {} s; try: {} {} true", far->host.ssh, kPatience.count(), fmt::join(plan_.ssh.ssh, " "),
                            far->host.ssh));
  });
  alive_timer_.start(kAliveInterval, [this] { send_to_all(encode(MessageKind::alive)); }, kAliveInterval);
}

void HostsLauncher::on_message(Far& far, MessageKind kind, std::string_view body) {
  far.heard = true;
  if (kind == MessageKind::hello && !far.hello) {
    far.hello = parse_hello(body);
    if (far.hello->protocol != kDeputyProtocol) {
      give_up(far, 1,
              fmt::format("{}: its `ringlet` speaks version {} of the launcher's protocol, this one {}; install the same on both",
                          far.host.ssh, far.hello->protocol, kDeputyProtocol));
      return;
    }
    hand_out_jobs_if_all_answered();
  } else if (kind == MessageKind::ready && jobs_sent_ && !started_) {
    far.port = parse_number(body, kMaxPort);
    start_if_all_ready();
  } else if (kind == MessageKind::refused) {
    const Refusal refusal = parse_refusal(body);
    give_up(far, refusal.exit_code, far.host.ssh + ": " + refusal.text);
  } else if (started_) {
    on_running(far, kind, body);
  }
}

void HostsLauncher::on_running(Far& far, MessageKind kind, std::string_view body) {
  if (kind == MessageKind::output) {
    const OutputPart part = parse_output(body);
    output_->feed(exit_of(far, part.rank).rank, part.error ? RankOutput::Channel::err : RankOutput::Channel::out, part.bytes);
    if (output_->congested())
      for (const auto& other : fars_) other->link->pause();
  } else if (kind == MessageKind::said) {
    output_->say(far.host.ssh + ": " + std::string(body));
  } else if (kind == MessageKind::exit) {
    const ExitNote note = parse_exit(body);
    RankExit& exit = exit_of(far, note.exit.rank);
    const std::string host = exit.host;
    exit = note.exit;
    exit.host = host;
    course_->note_exit(exit, note.exec_error);
  } else if (kind == MessageKind::gone) {
    output_->end_rank(exit_of(far, parse_number(body, kMaxWorldSize)).rank);
  } else if (kind == MessageKind::input_taken && input_) {
    input_->read_next();
  } else if (kind == MessageKind::over) {
    far.over = true;
    far.link->close();
  }
}

/// Only a rank of that host.
RankExit& HostsLauncher::exit_of(const Far& far, int rank) {
  if (rank < far.first_rank || rank >= far.first_rank + far.count)
    throw LaunchError(1, fmt::format("it speaks of rank {}, which does not run there; install the same version on both", rank));
  return exits_[static_cast<std::size_t>(rank)];
}

void HostsLauncher::on_end(Far& far) {
  if (started_ && !far.over) {
    note_lost(far);
  } else if (!started_ && far.failure.empty() && !course_->stopping()) {
    give_up(far, 1,
            far.hello ? explain_loss(far.host, far.link->exit_code(), far.link->complaint()) + " before the ranks were started"
                      : explain_failure(far.host, plan_.ssh, options_.helper_path, far.link->exit_code(), far.link->complaint()));
  }
  settle();
}

/// All hosts are heard before the launch ends, so that one run tells all that is to be mended.
void HostsLauncher::give_up(Far& far, int exit_code, const std::string& why) {
  if (far.failure.empty()) far.failure = why;
  far.link->close();
  far.link->kill(SIGTERM);
  if (jobs_sent_) {
    course_->fail(exit_code, far.failure);
    course_->stop(SIGTERM, options_.grace);
  } else {
    hand_out_jobs_if_all_answered();
  }
}

void HostsLauncher::hand_out_jobs_if_all_answered() {
  if (course_->stopping() || jobs_sent_) return;
  std::string failures;
  for (const auto& far : fars_) {
    if (far->failure.empty() && !far->hello) return;
    if (!far->failure.empty()) failures += (failures.empty() ? "" : "\n  ") + far->failure;
  }
  patience_timer_.stop();
  if (!failures.empty()) {
    course_->fail(1, "nothing was started, since not all hosts can be used:\n  " + failures);
    course_->stop(SIGTERM, {});
    return;
  }
  jobs_sent_ = true;
  for (const auto& far : fars_) far->link->send(encode(make_job(*far)));
}

Job HostsLauncher::make_job(const Far& far) const {
  Job job;
  job.options = options_;
  job.options.labels.clear();
  job.options.first_rank = far.first_rank;
  job.options.ranks_here = far.count;
  auto& environment = job.options.environment;
  environment.insert(environment.begin(), far.host.environment.begin(), far.host.environment.end());
  environment.insert(environment.begin(), plan_.environment.begin(), plan_.environment.end());
  if (!options_.working_directory) job.options.working_directory = far.host.working_directory;
  std::error_code error;
  job.preferred_directory = std::filesystem::current_path(error).string();
  if (options_.terminal_columns) {
    std::size_t widest = 0;
    for (const RankExit& exit : exits_) widest = std::max(widest, make_prefix(options_, exit.rank).size());
    job.options.terminal_columns = std::max(*options_.terminal_columns - static_cast<int>(widest), 0);
  }
  if (far.first_rank == 0) job.listen_at = listen_for(meeting_host(), plan_.coordinator_port);
  return job;
}

std::string HostsLauncher::meeting_host() const {
  if (plan_.coordinator_host) return *plan_.coordinator_host;
  std::vector<ReachedHost> reached;
  for (const auto& far : fars_) reached.push_back({far->host, *far->hello});
  return choose_meeting_host(reached);
}

void HostsLauncher::start_if_all_ready() {
  if (course_->stopping() || std::any_of(fars_.begin(), fars_.end(), [](const auto& far) { return !far->port; })) return;
  started_ = true;
  for (const RankExit& exit : exits_) output_->attach(exit.rank);
  const std::string coordinator = to_string(Address{meeting_host(), static_cast<std::uint16_t>(*fars_.front()->port)});
  send_to_all(encode(MessageKind::start, coordinator));
  if (!options_.stdin_rank) return;
  for (const auto& far : fars_)
    if (*options_.stdin_rank >= far->first_rank && *options_.stdin_rank < far->first_rank + far->count)
      input_.emplace(loop_.get(), [&link = *far->link](std::string_view bytes) { link.send(encode(MessageKind::input, bytes)); });
  input_->read_next();
}

void HostsLauncher::note_lost(Far& far) {
  std::vector<int> lost;
  for (int rank = far.first_rank; rank < far.first_rank + far.count; ++rank) {
    RankExit& exit = exits_[static_cast<std::size_t>(rank)];
    output_->end_rank(rank);
    if (exit.code || exit.signal) continue;
    exit.lost = true;
    lost.push_back(rank);
  }
  far.over = true;
  if (lost.empty()) return;
  course_->fail(1, fmt::format("{}, and with it {} {}; that host ends them by itself",
                               explain_loss(far.host, far.link->exit_code(), far.link->complaint()), lost.size() == 1 ? "rank" : "ranks",
                               fmt::join(lost, ", ")));
  course_->stop(SIGTERM, options_.grace);
}

void HostsLauncher::stop(int signal_number, std::chrono::milliseconds grace) {
  for (const auto& far : fars_) {
    if (!far->link || far->link->ended()) continue;
    if (started_ && !far->over) {
      far->link->send(encode(StopOrder{signal_number, grace}));
    } else if (!started_) {
      // Nothing runs there yet: the deputy ends with its input, and ssh that still waits for an answer does not notice.
      far->link->close();
      if (!far->hello || grace.count() == 0) far->link->kill(SIGTERM);
    }
  }
  expect_end(grace);
}

/// Without it a machine that hangs would hold the launcher for as long as ssh lets it.
void HostsLauncher::expect_end(std::chrono::milliseconds grace) {
  const auto now = std::chrono::steady_clock::now();
  if (now + grace + kEndPatience >= end_expected_at_) return;
  end_expected_at_ = now + grace + kEndPatience;
  for (const auto& far : fars_) far->heard = false;
  silence_timer_.start(grace + kEndPatience, [this] { give_up_silent(); }, kEndPatience);
}

void HostsLauncher::give_up_silent() {
  // What they have to say may be held up here.
  const bool held_up = output_ && output_->congested();
  for (const auto& far : fars_)
    if (far->link && !far->link->ended() && !std::exchange(far->heard, held_up) && !held_up) far->link->kill(SIGKILL);
}

void HostsLauncher::settle() {
  if (output_ && !output_->congested())
    for (const auto& far : fars_)
      if (far->link) far->link->resume();
  const bool over = std::all_of(fars_.begin(), fars_.end(), [](const auto& far) { return !far->link || far->link->ended(); });
  if (over && (!output_ || output_->finished())) finished_ = true;
}

void HostsLauncher::send_to_all(const std::string& message) {
  for (const auto& far : fars_)
    if (far->link) far->link->send(message);
}

}  // namespace ringlet::launch
