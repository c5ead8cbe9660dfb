#include "tools/command/subcommand.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/command/standard_output.hpp"

namespace ringlet::command {

namespace {

/// While this is set, it receives the declared options, and nothing is parsed.
const std::function<void(const CLI::App&)>* visitor = nullptr;

}  // namespace

std::optional<int> parse_options(CLI::App& app, Arguments arguments) {
  if (visitor != nullptr) {
    (*visitor)(app);
    return 0;
  }
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success&) {
    print_out(app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string name = app.get_name();
    return usage_error(name.substr(name.find(' ') + 1), error.what());
  }
  return std::nullopt;
}

void visit_options(const Subcommand& subcommand, const std::function<void(const CLI::App&)>& visit) {
  visitor = &visit;
  subcommand.run({});
  visitor = nullptr;
}

bool wants_colours() {
  const char* without = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (without == nullptr || *without == '\0');
}

void print_line(std::string_view text) { print_out(fmt::format("{}\n", text)); }

void print_json(const nlohmann::ordered_json& json) {
  print_line(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int usage_error(std::string_view subcommand, const std::string& what) {
  fmt::print(stderr, "ringlet {}: {}\nrun `ringlet {} --help` for its options\n", subcommand, what, subcommand);
  return kUsageError;
}

}  // namespace ringlet::command
