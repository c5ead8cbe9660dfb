#include "tools/launch/job_runner.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ringlet::launch {

namespace {

constexpr char kReaderWentAway[] = "the reader of the ranks' output went away";

bool is_ignored(int signal_number) {
  struct sigaction action{};
  return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

JobRunner::JobRunner(UvLoop& loop, RankOutput::Options output)
    : loop_(loop),
      output_(loop.uv(), std::move(output),
              {.on_taken =
                   [this](std::size_t machine, bool error, std::size_t bytes) {
                     if (job_) job_->take_output(machine, error, bytes);
                   },
               .on_lost =
                   [this](int error) {
                     output_error_ = error;
                     loop_.defer([this] { on_output_lost(); });
                   },
               .on_idle = [this] { loop_.defer([this] { end_if_written(); }); }}) {
  ::signal(SIGPIPE, SIG_IGN);
  watch_signals();
}

void JobRunner::watch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    // A process that was started with nohup or in the background is meant to outlive these.
    if ((number == SIGHUP || number == SIGINT || number == SIGQUIT) && is_ignored(number)) continue;
    signals_.push_back(
        std::make_unique<UvSignal>(loop_.uv(), number, [this](int received) { loop_.defer([this, received] { on_signal(received); }); }));
  }
}

job::Job& JobRunner::start(job::JobOptions options, std::vector<job::Candidate> candidates, Hooks hooks) {
  hooks_ = std::move(hooks);
  job::Job::Events events;
  events.on_notice = [this](const std::string& text) { output_.say(text); };
  events.on_chosen = [this, prefix = options.prefix](const std::vector<job::RankExit>& ranks) {
    output_.attach(ranks, prefix);
    hooks_.on_chosen(ranks);
  };
  events.on_added = [this, prefix = options.prefix](const std::vector<job::RankExit>& ranks) { output_.attach(ranks, prefix); };
  events.on_listening = hooks_.on_listening;
  events.on_trace = hooks_.on_trace;
  events.on_started = [this, feeds = hooks_.feeds_input && options.start.has_input] {
    hooks_.on_started();
    if (feeds) feed_input();
  };
  events.on_output = [this](std::size_t machine, const job::Output& output) { output_.show(machine, output); };
  events.on_input_taken = [this] {
    if (input_) input_->read_next();
  };
  events.on_end = [this](const job::JobResult& result) {
    result_ = result;
    output_.finish();
    end_if_written();
  };
  job_ = std::make_unique<job::Job>(loop_, std::move(options), std::move(candidates), std::move(events));
  return *job_;
}

void JobRunner::feed_input() {
  input_.emplace(loop_.uv(),
                 [this](std::string_view bytes) { loop_.defer([this, piece = std::string(bytes)] { job_->send_input(piece); }); });
  input_->read_next();
}

void JobRunner::on_signal(int signal_number) {
  const bool ends = signal_number == SIGINT || signal_number == SIGTERM;
  // A reader that takes no output can hold a job whose ranks have ended. A second signal gives up output that it does not take.
  if (ends && (result_ || (job_ && (job_->ranks_over() || job_->stopping()) && !output_.idle()))) output_.discard();
  if (job_ && !result_)
    job_->on_signal(signal_number);
  else if (!result_ && signal_number != SIGUSR1 && signal_number != SIGUSR2)
    give_up(128 + signal_number, "");
  end_if_written();
}

void JobRunner::on_output_lost() {
  if (!job_ || result_) return end_if_written();
  if (output_error_ == EPIPE) return job_->fail(128 + SIGPIPE, kReaderWentAway);
  // What ranks do is worth more than what they say, so a full disk does not end them.
  output_.say(fmt::format("cannot write the ranks' output: {}; the job goes on without it", std::strerror(output_error_)));
}

void JobRunner::give_up(int exit_code, std::string why) {
  result_.emplace();
  result_->exit_code = exit_code;
  result_->error = std::move(why);
  end_if_written();
}

void JobRunner::end_if_written() { over_ = result_ && output_.idle(); }

job::JobResult JobRunner::run() {
  while (!over_) loop_.wait();
  if (output_error_ == EPIPE && result_->exit_code == 0) {
    result_->exit_code = 128 + SIGPIPE;
    result_->error = kReaderWentAway;
  } else if (output_error_ != 0 && result_->exit_code == 0) {
    result_->exit_code = 1;
    result_->error = fmt::format("the job is done, but not all of the ranks' output was written: {}", std::strerror(output_error_));
  }
  return *result_;
}

}  // namespace ringlet::launch
