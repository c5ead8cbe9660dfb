#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/command/standard_output.hpp"
#include "tools/command/subcommand.hpp"

namespace ringlet::command {

int run_version(Arguments arguments) {
  CLI::App app("Prints Ringlet's version.", "ringlet version");
  app.footer("Example:\n  ringlet version --json\n\nExit codes: 0; 2 a mistake on the command line.");
  bool json = false;
  app.add_flag("--json", json, "Print JSON");
  if (const auto over = parse_options(app, arguments)) return *over;
  if (json)
    print_json({{"version", RINGLET_VERSION}});
  else
    print_out(fmt::format("ringlet {}\n", RINGLET_VERSION));
  return 0;
}

}  // namespace ringlet::command
