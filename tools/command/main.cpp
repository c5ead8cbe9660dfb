#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "tools/command/standard_output.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/standard_error.hpp"

namespace {

using namespace ringlet::command;

constexpr std::array kSubcommands{
    Subcommand{"bench", "measure collectives between ranks", run_bench},
    Subcommand{"completion", "print a shell's completions for this command", run_completion},
    Subcommand{"discover", "show the machines on the local network", run_discover},
    Subcommand{"doctor", "explain why machines do not find or reach each other", run_doctor},
    Subcommand{"launch", "run a program as N ranks, here or on other machines", run_launch},
    Subcommand{"machines", "show, rename, add and remove the machines whose keys are known", run_machines},
    Subcommand{"pair", "bring a group's token to another machine by a short code", run_pair},
    Subcommand{"plan", "predict what a step's communication takes, and say which way to take", run_plan},
    Subcommand{"run", "run a program on all machines that are up", run_run},
    Subcommand{"serve", "run a program as ranks that browsers join", run_serve},
    Subcommand{"status", "show what the ranks of running groups do, and whom they wait for", run_status},
    Subcommand{"token", "make a token that lets ranks join", run_token},
    Subcommand{"trace", "sum up a trace of ranks, or merge their parts", run_trace},
    Subcommand{"up", "make this machine known to a group, and start programs for it", run_up},
    Subcommand{"version", "print the version", run_version},
};

// A pipe or socket could get the number of a closed standard descriptor. Programs would then take it for their input or output.
// A closed standard output is opened for reading, so that writing to it still fails and check_output() notices.
void open_standard_descriptors() {
  constexpr std::array kModes{O_RDWR, O_RDONLY, O_RDWR};
  for (int fd = 0; fd < static_cast<int>(kModes.size()); ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", kModes[static_cast<std::size_t>(fd)]) != fd) return;
}

std::string help() {
  std::string text = "Ringlet: training over a local network.\n\nUsage: ringlet SUBCOMMAND [OPTIONS]\n\nSubcommands:\n";
  for (const Subcommand& subcommand : kSubcommands) text += fmt::format("  {:<10} {}\n", subcommand.name, subcommand.summary);
  return text + "\n`ringlet SUBCOMMAND --help` shows its options.\n\nExample:\n  ringlet launch -n 4 -- ./train\n";
}

// Returns how many letters must be inserted, removed or replaced to turn one word into the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

int unknown_subcommand(std::string_view name) {
  constexpr std::size_t kCloseEnough = 3;
  std::string all;
  std::string guess;
  std::size_t best = kCloseEnough + 1;
  for (const Subcommand& subcommand : kSubcommands) {
    all += (all.empty() ? "" : ", ") + std::string(subcommand.name);
    const std::size_t steps = distance(name, subcommand.name);
    if (steps >= std::min(best, subcommand.name.size())) continue;
    best = steps;
    guess = fmt::format("did you mean `{}`? ", subcommand.name);
  }
  const char* what = name.front() == '-' ? "option" : "subcommand";
  ringlet::launch::print_error("ringlet: there is no {} '{}'; {}there are the options --help and --version, and the subcommands {}\n", what,
                               name, guess, all);
  return kUsageError;
}

int run(int argc, char** argv) {
  if (argc < 2) {
    ringlet::launch::print_error(help());
    return kUsageError;
  }
  std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    print_out(help());
    return 0;
  }
  if (name == "--version") name = "version";
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  const auto* const subcommand =
      std::find_if(kSubcommands.begin(), kSubcommands.end(), [&](const Subcommand& one) { return one.name == name; });
  if (subcommand == kSubcommands.end()) return unknown_subcommand(name);
  try {
    return subcommand->run(arguments);
  } catch (const std::bad_alloc&) {
    ringlet::launch::print_error("ringlet {}: there is no memory left; close other programs, or allow this one more (ulimit -v)\n", name);
    return 1;
  } catch (const std::exception& error) {
    ringlet::launch::print_error("ringlet {}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace

std::span<const Subcommand> ringlet::command::subcommands() noexcept { return kSubcommands; }

int main(int argc, char** argv) {
  open_standard_descriptors();
  if (const auto code = ringlet::launch::run_internal_command(argc, argv)) return *code;
  return check_output(run(argc, argv));
}
