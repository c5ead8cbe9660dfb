#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace ringlet::command {

/// Exit code for a command line that cannot be understood.
inline constexpr int kUsageError = 2;

/// What follows the subcommand's name on the command line.
using Arguments = std::span<const std::string>;

/// One line of the table in main.cpp.
struct Subcommand {
  std::string_view name;
  std::string_view summary;
  int (*run)(Arguments arguments);  // returns the exit code
};

int run_bench(Arguments arguments);
int run_completion(Arguments arguments);
int run_discover(Arguments arguments);
int run_doctor(Arguments arguments);
int run_launch(Arguments arguments);
int run_pair(Arguments arguments);
int run_run(Arguments arguments);
int run_serve(Arguments arguments);
int run_status(Arguments arguments);
int run_token(Arguments arguments);
int run_up(Arguments arguments);
int run_version(Arguments arguments);

/// The table in main.cpp.
std::span<const Subcommand> subcommands() noexcept;

/// Reads the options that `app` declares. Returns an exit code where the command is over: 0 after --help, `kUsageError` after a mistake,
/// which is then told on stderr.
std::optional<int> parse_options(CLI::App& app, Arguments arguments);

/// Hands `visit` what `subcommand` declares, the very `App` that reads its command line; nothing is parsed or run. Every subcommand calls
/// `parse_options` before it does anything.
void visit_options(const Subcommand& subcommand, const std::function<void(const CLI::App&)>& visit);

/// Whether what goes to stdout may have colours: it is a terminal, and NO_COLOR is not set.
bool wants_colours();

/// Tells a mistake in the command line on stderr; returns `kUsageError`.
int usage_error(std::string_view subcommand, const std::string& what);

}  // namespace ringlet::command
