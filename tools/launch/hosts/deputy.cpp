#include "tools/launch/hosts/deputy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tools/launch/launch_error.hpp"
#include "tools/launch/pipe.hpp"

namespace ringlet::launch {

namespace {

Hello make_hello() {
  Hello hello;
  if (const char* connection = std::getenv("SSH_CONNECTION")) {
    std::string port;
    std::istringstream(connection) >> hello.launcher_address >> port >> hello.own_address;
  }
  return hello;
}

bool is_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

Deputy::Deputy(std::string helper_path) : out_(loop_.get(), STDOUT_FILENO), silence_timer_(loop_.get()) {
  options_.helper_path = std::move(helper_path);
  out_.on_drained = [this] { resume(); };
  out_.on_failed = [this](int) { on_launcher_gone(); };
}

int Deputy::run() {
  ::signal(SIGPIPE, SIG_IGN);
  in_.emplace(
      loop_.get(), UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), [this](std::string_view bytes) { on_bytes(bytes); },
      [this] { on_launcher_gone(); });
  expect_launcher();
  out_.write(encode(make_hello()));
  while (!finished_) uv_run(loop_.get(), UV_RUN_ONCE);
  return exit_code_;
}

void Deputy::expect_launcher() {
  silence_timer_.start(kLauncherSilence, [this] { on_launcher_gone(); });
}

void Deputy::on_bytes(std::string_view bytes) {
  expect_launcher();
  try {
    messages_.feed(bytes, [this](MessageKind kind, std::string_view body) { on_message(kind, body); });
  } catch (const LaunchError& error) {
    refuse({error.exit_code(), error.what()});
  }
}

void Deputy::on_message(MessageKind kind, std::string_view body) {
  if (ended_ && kind != MessageKind::stop && kind != MessageKind::signal) return;
  if (kind == MessageKind::job && !prepared_) {
    prepare(parse_job(body));
  } else if (kind == MessageKind::start && prepared_ && !started_) {
    start(std::string(body));
  } else if (kind == MessageKind::signal && processes_) {
    processes_->send(parse_number(body, NSIG));
  } else if (kind == MessageKind::stop && processes_) {
    const StopOrder order = parse_stop(body);
    processes_->stop(order.signal_number, order.grace);
  } else if (kind == MessageKind::input && started_) {
    feed_input(body);
  }
}

void Deputy::prepare(Job job) {
  job.options.helper_path = std::move(options_.helper_path);
  options_ = std::move(job.options);
  prepared_ = true;
  const bool preferred = !options_.working_directory && is_directory(job.preferred_directory);
  if (preferred) options_.working_directory = job.preferred_directory;
  if (const auto mistake = find_mistake(options_)) throw LaunchError(2, *mistake);
  if (job.listen_at) coordinator_ = open_coordinator_socket(*job.listen_at);
  LocalRanks::Events events;
  events.on_started = [this](int rank, RankProcess::Pipes pipes) { attach(rank, std::move(pipes)); };
  events.on_exit = [this](const RankExit& exit, std::optional<int> exec_error) { out_.write(encode(ExitNote{exit, exec_error})); };
  events.on_gone = [this](int rank) {
    for (Rank& entry : ranks_)
      if (entry.number == rank) {
        entry.gone = true;
        for (const auto& reader : entry.readers) reader->end_after_present_bytes();
      }
  };
  events.on_change = [this] { settle(); };
  events.on_guard_lost = [this] {
    out_.write(encode(MessageKind::said,
                      "the guard process was ended; should the connection be lost now, processes of the ranks can stay behind"));
  };
  processes_.emplace(loop_.get(), options_, std::move(events));
  out_.write(encode_number(MessageKind::ready, coordinator_.port));
}

void Deputy::start(std::string coordinator) {
  started_ = true;
  coordinator_.address = std::move(coordinator);
  if (options_.stdin_rank && *options_.stdin_rank >= options_.first_rank &&
      *options_.stdin_rank < options_.first_rank + *options_.ranks_here) {
    Pipe pipe = open_pipe(0, UV_NONBLOCK_PIPE);
    input_reader_ = std::move(pipe.read_end);
    input_writer_ = std::move(pipe.write_end);
    input_.emplace(loop_.get(), input_writer_.get());
    input_->on_drained = [this] { out_.write(encode(MessageKind::input_taken)); };
  }
  std::vector<InheritedFd> inherited;
  if (coordinator_.socket) inherited.push_back({"RINGLET_COORDINATOR_FD", coordinator_.socket.get()});
  ranks_.reserve(static_cast<std::size_t>(*options_.ranks_here));
  try {
    processes_->start(coordinator_, std::move(inherited), input_reader_.get());
  } catch (const LaunchError& error) {
    refuse({error.exit_code(), error.what()});
  }
  input_reader_.reset();
  coordinator_.socket.reset();
  settle();
}

void Deputy::attach(int rank, RankProcess::Pipes pipes) {
  Rank& entry = ranks_.emplace_back();
  entry.number = rank;
  for (const bool error : {false, true})
    entry.readers.push_back(std::make_unique<PipeReader>(
        loop_.get(), std::move(error ? pipes.err : pipes.out), [this, rank, error](std::string_view bytes) { forward(rank, error, bytes); },
        [this] { settle(); }));
}

void Deputy::forward(int rank, bool error, std::string_view bytes) {
  out_.write(encode(OutputPart{rank, error, bytes}));
  if (!out_.congested()) return;
  for (Rank& entry : ranks_)
    for (const auto& reader : entry.readers) reader->pause();
}

void Deputy::resume() {
  for (Rank& entry : ranks_)
    for (const auto& reader : entry.readers) reader->resume();
  settle();
}

void Deputy::feed_input(std::string_view bytes) {
  if (!input_) return;
  if (!bytes.empty()) {
    input_->write(bytes);
    return;
  }
  input_.reset();
  input_writer_.reset();
}

void Deputy::on_launcher_gone() {
  ended_ = true;
  silence_timer_.stop();
  out_.discard();
  resume();
  if (processes_) processes_->stop(SIGTERM, options_.grace);
  settle();
}

void Deputy::refuse(const Refusal& refusal) {
  if (ended_) return;
  ended_ = true;
  exit_code_ = refusal.exit_code;
  out_.write(encode(refusal));
  if (processes_) processes_->stop(SIGTERM, options_.grace);
  settle();
}

void Deputy::settle() {
  bool all_told = true;
  for (Rank& entry : ranks_) {
    const bool read = std::all_of(entry.readers.begin(), entry.readers.end(), [](const auto& reader) { return reader->ended(); });
    if (entry.gone && read && !entry.told) {
      entry.told = true;
      out_.write(encode_number(MessageKind::gone, entry.number));
    }
    all_told = all_told && entry.told;
  }
  // What is still unsent keeps it until the launcher has read it, or is gone.
  finished_ = finished_ || (guard_gone_ && out_.idle());
  if (!ended_ && !started_) return;
  if (dismissed_ || (processes_ && !processes_->over()) || !all_told) return;
  dismissed_ = true;
  if (!ended_) out_.write(encode(MessageKind::over));
  const auto on_guard_gone = [this] {
    guard_gone_ = true;
    settle();
  };
  if (processes_)
    processes_->dismiss_guard(on_guard_gone);
  else
    on_guard_gone();
}

int run_deputy() {
  std::array<char, PATH_MAX> path{};
  std::size_t length = path.size();
  try {
    if (const int error = uv_exepath(path.data(), &length); error != 0)
      throw LaunchError(1, std::string("cannot find its own program: ") + uv_strerror(error));
    return Deputy(std::string(path.data(), length)).run();
  } catch (const LaunchError& error) {
    fmt::print(stderr, "ringlet: {}\n", error.what());
    return error.exit_code();
  }
}

}  // namespace ringlet::launch
