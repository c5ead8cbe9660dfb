#include <CLI/CLI.hpp>

#include "native/command/launch_line.hpp"

namespace ringlet::command {

namespace {

constexpr char kFooter[] = R"(Example:
  ringlet launch -n 4 -- ./train --epochs 3

Each rank gets RINGLET_RANK, RINGLET_WORLD_SIZE and RINGLET_COORDINATOR; ringlet::init() needs nothing else. On a terminal also
RINGLET_TERMINAL_COLUMNS, the width that is left for a rank's own progress bar.
Exit codes: 0 if all ranks exited with 0, else that of the first rank that failed (128 + signal if a signal killed it);
126 or 127 if PROGRAM cannot be run, 128 + signal after SIGINT or SIGTERM, 2 for a mistake on the command line.)";

}  // namespace

int run_launch(Arguments arguments) {
  LaunchLine line;
  CLI::App app("Runs PROGRAM as N ranks of one group on this machine:\n  ringlet launch -n N [OPTIONS] -- PROGRAM [ARGS...]",
               "ringlet launch");
  app.footer(kFooter);
  app.add_option("-n,--ranks", line.options.world_size, "How many ranks to start")->required();
  declare_launch_options(app, line);
  if (const auto over = parse_launch_line(app, arguments, line)) return *over;
  if (const auto mistake = convert_launch_line(line)) return usage_error("launch", *mistake);
  return launch_ranks("launch", std::move(line));
}

}  // namespace ringlet::command
