#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_directory.hpp"

namespace ringlet::test {

/// The result of one run of the command.
struct Outcome {
  int exit_code = -1;  // minus the signal's number if a signal killed it
  std::string out;
  std::string err;
};

/// A run of `ringlet`, with pipes at its standard descriptors. Every process that it starts inherits one more pipe, the lifeline, whose end
/// tells that no process is left. Every wait has a deadline, and fails the test when it passes. The destructor kills the run.
class CommandProcess {
 public:
  /// Its configuration is in a folder of this test program, unless XDG_CONFIG_HOME is in `environment`. `network` is the descriptor of the
  /// network namespace to run in; -1 means that of this process.
  explicit CommandProcess(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> environment = {},
                          int network = -1);
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;
  ~CommandProcess();

  pid_t pid() const noexcept { return pid_; }
  void send(int signal_number) const;
  void write_stdin(const std::string& text) const;
  void close_stdin();
  void close_stdout();
  /// Reads until stdout contains `text` at least `count` times.
  void wait_for_stdout(const std::string& text, int count = 1);
  void wait_for_stderr(const std::string& text);
  /// Reads what is there already.
  void read_what_came();
  /// Return what has been read of stdout and stderr so far.
  const std::string& out() const noexcept { return out_; }
  const std::string& err() const noexcept { return err_; }
  /// Reads to the end, waits until no process is left, and returns how the command ended.
  Outcome finish();

 private:
  void read_until(const std::function<bool()>& enough);

  pid_t pid_ = -1;
  int stdin_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  int lifeline_ = -1;
  std::string out_;
  std::string err_;
};

/// Runs `ringlet ARGUMENTS` to its end.
Outcome run_command(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> environment = {});
/// Runs `ringlet launch OPTIONS -- /bin/sh -c SCRIPT` to its end.
Outcome run_script(std::vector<std::string> options, const std::string& script,
                   std::vector<std::pair<std::string, std::string>> environment = {});
/// Returns the arguments for the same.
std::vector<std::string> script_arguments(std::vector<std::string> options, const std::string& script);

/// Returns the lines of `text`, sorted.
std::vector<std::string> sorted_lines(const std::string& text);

/// Waits until it holds, for what shows no event; requires that it does within the deadline of these tests.
void wait_for_condition(const std::function<bool()>& condition);
/// Waits until the process has died, reaped or not.
void wait_for_death(pid_t process);

std::string read_file(const std::string& path);

}  // namespace ringlet::test
