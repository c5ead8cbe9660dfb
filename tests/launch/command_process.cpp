#include "tests/launch/command_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace ringlet::test {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{40};

std::array<int, 2> open_pipe() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  return ends;
}

int milliseconds_until(Clock::time_point deadline) {
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count()));
}

void close_and_forget(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Reads what is available, and closes the descriptor at the end of the stream.
void read_available(int& fd, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count > 0)
    into.append(buffer.data(), static_cast<std::size_t>(count));
  else
    close_and_forget(fd);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// Returns a folder for the configuration of all commands that are not given another one, since they must not change the user's own.
const std::string& config_home() {
  static const TemporaryDirectory home;
  return home.path();
}

}  // namespace

CommandProcess::CommandProcess(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> environment,
                               int network) {
  const auto in = open_pipe(), out = open_pipe(), err = open_pipe(), life = open_pipe();
  arguments.insert(arguments.begin(), RINGLET_COMMAND);
  environment.insert(environment.begin(), {"XDG_CONFIG_HOME", config_home()});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::fcntl(life[1], F_SETFD, 0);
    if (network >= 0 && ::setns(network, CLONE_NEWNET) != 0) ::_exit(98);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(pointers[0], pointers.data());
    ::_exit(99);
  }
  for (const int fd : {in[0], out[1], err[1], life[1]}) ::close(fd);
  stdin_ = in[1];
  stdout_ = out[0];
  stderr_ = err[0];
  lifeline_ = life[0];
}

CommandProcess::~CommandProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (int* fd : {&stdin_, &stdout_, &stderr_, &lifeline_}) close_and_forget(*fd);
}

void CommandProcess::send(int signal_number) const { REQUIRE(::kill(pid_, signal_number) == 0); }

void CommandProcess::write_stdin(const std::string& text) const {
  REQUIRE(::write(stdin_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void CommandProcess::close_stdin() { close_and_forget(stdin_); }

void CommandProcess::close_stdout() { close_and_forget(stdout_); }

void CommandProcess::wait_for_stdout(const std::string& text, int count) {
  read_until([&] { return count_of(out_, text) >= count; });
}

void CommandProcess::wait_for_stderr(const std::string& text) {
  read_until([&] { return count_of(err_, text) >= 1; });
}

void CommandProcess::read_what_came() {
  for (auto [fd, text] : {std::pair{&stdout_, &out_}, {&stderr_, &err_}}) {
    pollfd entry{*fd, POLLIN, 0};
    while (*fd >= 0 && ::poll(&entry, 1, 0) > 0) read_available(*fd, *text);
  }
}

void CommandProcess::read_until(const std::function<bool()>& enough) {
  const auto deadline = Clock::now() + kDeadline;
  std::string nothing;
  while (!enough()) {
    std::array<pollfd, 3> entries{{{stdout_, POLLIN, 0}, {stderr_, POLLIN, 0}, {lifeline_, POLLIN, 0}}};
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    INFO("so far on stdout: " << out_.substr(0, 2000) << "\non stderr: " << err_.substr(0, 2000));
    REQUIRE(ready > 0);
    if (entries[0].revents != 0) read_available(stdout_, out_);
    if (entries[1].revents != 0) read_available(stderr_, err_);
    if (entries[2].revents != 0) read_available(lifeline_, nothing);
    if (stdout_ < 0 && stderr_ < 0 && lifeline_ < 0) REQUIRE(enough());
  }
}

Outcome CommandProcess::finish() {
  read_until([&] { return stdout_ < 0 && stderr_ < 0 && lifeline_ < 0; });
  int status = 0;
  REQUIRE(::waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), out_, err_};
}

Outcome run_command(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> environment) {
  CommandProcess process(std::move(arguments), std::move(environment));
  process.close_stdin();
  return process.finish();
}

std::vector<std::string> script_arguments(std::vector<std::string> options, const std::string& script) {
  options.insert(options.begin(), "launch");
  options.insert(options.end(), {"--", "/bin/sh", "-c", script});
  return options;
}

Outcome run_script(std::vector<std::string> options, const std::string& script,
                   std::vector<std::pair<std::string, std::string>> environment) {
  return run_command(script_arguments(std::move(options), script), std::move(environment));
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

void wait_for_condition(const std::function<bool()>& condition) {
  const auto end = Clock::now() + kDeadline;
  bool holds = condition();
  for (; !holds && Clock::now() < end; holds = condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(holds);
}

void wait_for_death(pid_t process) {
  const int watch = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (watch < 0 && errno == ESRCH) return;
  REQUIRE(watch >= 0);
  pollfd entry{watch, POLLIN, 0};
  const int ready = ::poll(&entry, 1, milliseconds_until(Clock::now() + kDeadline));
  ::close(watch);
  REQUIRE(ready == 1);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace ringlet::test
