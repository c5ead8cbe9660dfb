#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> program_arguments(std::vector<std::string> options, std::vector<std::string> program) {
  options.insert(options.begin(), "launch");
  options.insert(options.end(), {"--", RINGLET_RANK_PROGRAM});
  options.insert(options.end(), program.begin(), program.end());
  return options;
}

long resident_kilobytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      long kilobytes = 0;
      status >> kilobytes;
      return kilobytes;
    }
  return -1;
}

/// For processes that begin meanwhile; stands in for a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : before_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &usual_);
    const rlimit limit{bytes, usual_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &usual_);
    ::signal(SIGXFSZ, before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*const before_)(int);
  rlimit usual_{};
};

}  // namespace

TEST_CASE("each line carries its rank, on the stream it was written to") {
  const Outcome outcome = run_script({"-n", "3"}, "echo out; echo err >&2");
  CHECK(outcome.exit_code == 0);
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] out", "[1] out", "[2] out"});
  CHECK(sorted_lines(outcome.err) == std::vector<std::string>{"[0] err", "[1] err", "[2] err"});
}

TEST_CASE("prefixes are aligned when ranks have two digits") {
  const Outcome outcome = run_script({"-n", "11"}, "echo x");
  CHECK_THAT(outcome.out, Contains("[ 0] x\n") && Contains("[ 9] x\n") && Contains("[10] x\n"));
  CHECK(sorted_lines(outcome.out).size() == 11);
}

TEST_CASE("eight ranks write ten thousand lines each and none is lost or mixed") {
  const int count = 10000;
  const Outcome outcome = run_command(program_arguments({"-n", "8"}, {"lines", std::to_string(count)}));
  CHECK(outcome.exit_code == 0);
  std::vector<int> next(8, 0);
  std::istringstream lines(outcome.out);
  int wrong = 0;
  for (std::string line; std::getline(lines, line);) {
    const int rank = line.size() > 4 ? line[1] - '0' : 8;
    if (rank < 0 || rank > 7) {
      ++wrong;
      continue;
    }
    const int i = next[static_cast<std::size_t>(rank)]++;
    const std::string padding(static_cast<std::size_t>(i % 97), 'x');
    wrong += line == "[" + std::to_string(rank) + "] line " + std::to_string(i) + " " + padding ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(next == std::vector<int>(8, count));
}

TEST_CASE("stdout and stderr at one place are not mixed within lines") {
  const Outcome outcome = run_command(
      {"launch", "-n", "2", "--json", "--", RINGLET_RANK_PROGRAM, "lines", "3000"});  // --json sends the ranks' stdout to stderr
  int wrong = 0;
  for (const std::string& line : sorted_lines(outcome.err)) wrong += line.substr(0, 1) == "[" && line.substr(2, 7) == "] line " ? 0 : 1;
  CHECK(wrong == 0);
  CHECK(sorted_lines(outcome.err).size() == 6000);
}

TEST_CASE("a last line without a newline gets one") {
  const Outcome outcome = run_script({"-n", "2"}, "printf 'no end'");
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] no end", "[1] no end"});
  CHECK(outcome.out.back() == '\n');
  CHECK(run_script({"-n", "1", "--no-prefix"}, "printf 'no end'").out == "no end");
}

TEST_CASE("a very long line is cut into bounded ones") {
  const Outcome outcome = run_command(program_arguments({"-n", "1"}, {"long", "200000"}));
  const std::string full = "[0] " + std::string(65536, 'a') + "\n";
  CHECK(outcome.out == full + full + full + "[0] " + std::string(200000 - 3 * 65536, 'a') + "\n[0] end\n");
}

TEST_CASE("binary output passes unchanged where no prefix is asked for") {
  std::string expected;
  for (int round = 0; round < 1000; ++round)
    for (int value = 0; value < 256; ++value) expected.push_back(static_cast<char>(value));
  TemporaryDirectory directory;
  const std::string logs = directory.path() + "/made/here";
  const Outcome alone = run_command(program_arguments({"-n", "1", "--no-prefix", "--output-dir", logs}, {"octets"}));
  CHECK((alone.out == expected));
  CHECK((read_file(logs + "/rank-0.log") == expected));
  const Outcome prefixed = run_command(program_arguments({"-n", "2", "--output-dir", logs}, {"octets"}));
  CHECK(prefixed.exit_code == 0);
  CHECK((read_file(logs + "/rank-0.log") == expected));
  CHECK((read_file(logs + "/rank-1.log") == expected));
}

TEST_CASE("a prompt of a lone rank without prefix appears before its newline") {
  CommandProcess process(script_arguments({"-n", "1", "--no-prefix", "--stdin", "0"}, "printf 'go on? '; read answer; echo got $answer"));
  process.wait_for_stdout("go on? ");
  process.write_stdin("yes\n");
  CHECK(process.finish().out == "go on? got yes\n");
}

TEST_CASE("only the rank named by --stdin reads the launcher's input") {
  CommandProcess process(script_arguments({"-n", "3", "--stdin", "1"}, "cat; echo end"));
  process.write_stdin("for one\n");
  process.close_stdin();
  CHECK(sorted_lines(process.finish().out) == std::vector<std::string>{"[0] end", "[1] end", "[1] for one", "[2] end"});
}

TEST_CASE("a log file that can take no more is told, and the run goes on") {
  TemporaryDirectory directory;
  const FileSizeLimit limit(6);
  const Outcome outcome = run_script({"-n", "2", "--output-dir", directory.path()}, "[ $RINGLET_RANK = 0 ] || echo one; echo two");
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("rank-1.log: File too large; the rest of rank 1's output is not kept there"));
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] two", "[1] one", "[1] two"});
  CHECK(read_file(directory.path() + "/rank-0.log") == "two\n");
  CHECK(read_file(directory.path() + "/rank-1.log") == "one\ntw");
}

TEST_CASE("what a log file's name stands for is refused where it is no file, and nothing started") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/rank-1.log";
  const auto refused = [&](const std::string& why) {
    const Outcome outcome = run_script({"-n", "2", "--output-dir", directory.path()}, "echo started");
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains("cannot write " + path + ": " + why));
    std::filesystem::remove(path);
  };
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  refused("it is a device, a pipe or a socket");
  std::filesystem::create_symlink("/dev/full", path);
  refused("it is a device, a pipe or a socket");
  std::filesystem::create_symlink(directory.path() + "/none", path);
  refused("it is a symbolic link to nothing");
}

TEST_CASE("two launches do not write the same log files") {
  TemporaryDirectory directory;
  CommandProcess first(script_arguments({"-n", "1", "--output-dir", directory.path()}, "echo kept; exec sleep 1000"));
  first.wait_for_stdout("kept");
  const Outcome second = run_script({"-n", "1", "--output-dir", directory.path()}, "echo started");
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.err, Contains("rank-0.log: another process is writing it"));
  first.send(SIGTERM);
  first.finish();
  CHECK(read_file(directory.path() + "/rank-0.log") == "kept\n");
}

TEST_CASE("an output directory that cannot be made is a usage error and starts nothing") {
  TemporaryDirectory directory;
  std::ofstream(directory.path() + "/file").put('x');
  const Outcome outcome = run_script({"-n", "2", "--output-dir", directory.path() + "/file/logs"}, "echo started");
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("--output-dir") && Contains("/file/logs"));
}

TEST_CASE("a reader that does not read holds the ranks back, not the launcher's memory") {
  CommandProcess idle(script_arguments({"-n", "2"}, "echo here; exec sleep 600"));
  idle.wait_for_stdout("[1] here");
  const long usual = resident_kilobytes(idle.pid());
  idle.send(SIGTERM);
  idle.finish();
  CommandProcess process(program_arguments({"-n", "2"}, {"flood", "67108864"}));
  // The pipe is full when the first bytes are read, so any further output is in the launcher or held back.
  process.wait_for_stdout("[1] 0");
  const long held = resident_kilobytes(process.pid()) - usual;
  const Outcome outcome = process.finish();
  CHECK(usual > 0);
  CHECK(held < 24 * 1024);
  CHECK(sorted_lines(outcome.err) == std::vector<std::string>{"[0] done", "[1] done"});
  CHECK(outcome.out.size() == 2 * (67108864 + 1024 * 5));
}

TEST_CASE("the ranks end when the reader of their output goes away") {
  CommandProcess process(script_arguments({"-n", "2"}, "while :; do echo y; done"));
  process.wait_for_stdout("y");
  process.close_stdout();
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 128 + SIGPIPE);
  CHECK_THAT(outcome.err, Contains("went away"));
}

TEST_CASE("--json tells how each rank ended, alone on stdout") {
  // Rank 1 fails once rank 0 has exited, which closes rank 0's end of the pipe.
  const TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const Outcome outcome =
      run_script({"-n", "3", "--json", "--linger", "0"},
                 "case $RINGLET_RANK in 0) exec 3>$FIFO; echo text; exit 0;; 1) cat $FIFO; echo text; exit 7;; *) exec sleep 1000;; esac",
                 {{"FIFO", fifo}});
  CHECK(outcome.exit_code == 7);
  CHECK_THAT(outcome.err, Contains("[0] text"));
  const auto report = nlohmann::json::parse(outcome.out);
  CHECK(report.at("exit_code") == 7);
  CHECK(report.at("first_failed") == 1);
  CHECK(report.at("ranks").size() == 3);
  CHECK(report.at("ranks")[0].at("code") == 0);
  CHECK(report.at("ranks")[0].at("signal").is_null());
  CHECK(report.at("ranks")[1].at("code") == 7);
  CHECK(report.at("ranks")[2].at("code").is_null());
  CHECK(report.at("ranks")[2].at("signal") == SIGTERM);
  CHECK(report.at("ranks")[2].at("pid").get<int>() > 0);
}
