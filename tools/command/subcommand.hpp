#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace ringlet::command {

/// The exit code for an invalid command line.
inline constexpr int kUsageError = 2;

/// The arguments after the subcommand's name.
using Arguments = std::span<const std::string>;

/// A row of the table in main.cpp.
struct Subcommand {
  std::string_view name;
  std::string_view summary;
  int (*run)(Arguments arguments);  // returns the exit code; what it throws is told, with exit code 1
};

int run_bench(Arguments arguments);
int run_completion(Arguments arguments);
int run_discover(Arguments arguments);
int run_doctor(Arguments arguments);
int run_launch(Arguments arguments);
int run_machines(Arguments arguments);
int run_pair(Arguments arguments);
int run_plan(Arguments arguments);
int run_run(Arguments arguments);
int run_serve(Arguments arguments);
int run_status(Arguments arguments);
int run_token(Arguments arguments);
int run_trace(Arguments arguments);
int run_up(Arguments arguments);
int run_version(Arguments arguments);

/// Returns the table in main.cpp.
std::span<const Subcommand> subcommands() noexcept;

/// Reads the options that `app` declares. Returns an exit code if the command must end: 0 after --help, `kUsageError` after a mistake,
/// which is then printed on stderr.
std::optional<int> parse_options(CLI::App& app, Arguments arguments);

/// Passes the `App` that reads `subcommand`'s command line to `visit`. Nothing is parsed or run. This works because every subcommand calls
/// `parse_options` before it does anything else.
void visit_options(const Subcommand& subcommand, const std::function<void(const CLI::App&)>& visit);

/// Tells whether output to stdout may have colours: it must be a terminal, and NO_COLOR must not be set.
bool wants_colours();

/// Print a line on stdout that a reader sees at once. Bytes of JSON's texts that are not UTF-8, as in names of interfaces, are replaced.
void print_line(std::string_view text);
void print_json(const nlohmann::ordered_json& json);

/// Prints a mistake in the command line on stderr and returns `kUsageError`.
int usage_error(std::string_view subcommand, const std::string& what);

}  // namespace ringlet::command
