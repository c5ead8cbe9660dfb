#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/launch/command_process.hpp"

// How tests run train_text, and read what it has written.
namespace ringlet::test {

/// Writes a text with something to learn in it, and returns its path.
inline std::string write_text(const TemporaryDirectory& directory) {
  const std::string path = directory.path() + "/text.txt";
  std::ofstream file(path);
  for (int line = 0; line < 2000; ++line)
    file << "rank " << line % 7 << " sends " << line % 5 << " chunks to rank " << (line + 1) % 7 << ", then waits.\n";
  return path;
}

constexpr int kContext = 32;

/// The command's arguments for a small model; `launch` are options of the launcher.
inline std::vector<std::string> training_of(int ranks, const std::string& text, const std::vector<std::string>& more,
                                            const std::vector<std::string>& launch = {}, const std::string& width = "32") {
  std::vector<std::string> arguments{"launch", "-n", std::to_string(ranks), "--no-prefix"};
  arguments.insert(arguments.end(), launch.begin(), launch.end());
  arguments.insert(arguments.end(), {"--", TRAIN_TEXT, "--data", text, "--layers", "1", "--width", width, "--heads", "2", "--context",
                                     std::to_string(kContext)});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline Outcome train(int ranks, const std::string& text, const std::vector<std::string>& more, const std::string& width = "32") {
  return run_command(training_of(ranks, text, more, {}, width));
}

inline std::vector<double> read_losses(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<double> losses;
  for (double step, loss; lines >> step >> loss;) losses.push_back(loss);
  return losses;
}

/// The process of a rank that `launcher` has started.
inline ::pid_t process_of_rank(::pid_t launcher, int rank) {
  std::istringstream children(read_file(fmt::format("/proc/{0}/task/{0}/children", launcher)));
  const std::string wanted = fmt::format("RINGLET_RANK={}", rank) + '\0';
  for (::pid_t child; children >> child;)
    if (('\0' + read_file(fmt::format("/proc/{}/environ", child))).find('\0' + wanted) != std::string::npos) return child;
  FAIL("rank " << rank << " has no process");
  return -1;
}

inline nlohmann::json last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  return nlohmann::json::parse(last);
}

}  // namespace ringlet::test
