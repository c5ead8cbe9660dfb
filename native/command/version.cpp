#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include "native/command/subcommand.hpp"

namespace ringlet::command {

int run_version(Arguments arguments) {
  CLI::App app("Prints Ringlet's version.", "ringlet version");
  app.footer("Example:\n  ringlet version");
  if (const auto over = parse_options(app, arguments)) return *over;
  fmt::print("ringlet {}\n", RINGLET_VERSION);
  return 0;
}

}  // namespace ringlet::command
