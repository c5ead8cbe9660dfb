#include "native/token.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "native/command/subcommand.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::command {

int run_token(Arguments arguments) {
  CLI::App app("Prints a fresh token. Who has the group's token may join it; without one, ranks listen on this machine only.",
               "ringlet token");
  app.footer(
      "Every rank needs the same, in RINGLET_TOKEN or in a file that RINGLET_TOKEN_FILE names.\n\n"
      "Example:\n  ringlet token > group.token && export RINGLET_TOKEN_FILE=group.token");
  if (const auto over = parse_options(app, arguments)) return *over;
  TokenAuthenticator randomness("");
  fmt::print("{}\n", native::make_token(randomness));
  return 0;
}

}  // namespace ringlet::command
