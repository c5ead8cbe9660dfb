#include "native/token.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "native/command/subcommand.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::command {

int run_token(Arguments arguments) {
  CLI::App app("Prints a fresh token. Who has the group's token may join it; without one, ranks listen on this machine only.",
               "ringlet token");
  app.footer(
      "Every rank needs the same, in RINGLET_TOKEN or in a file that RINGLET_TOKEN_FILE names.\n\n"
      "Example:\n  ringlet token > group.token && export RINGLET_TOKEN_FILE=group.token\n\n"
      "Exit codes: 0; 2 a mistake on the command line.");
  bool json = false;
  app.add_flag("--json", json, "Print JSON");
  if (const auto over = parse_options(app, arguments)) return *over;
  TokenAuthenticator randomness("");
  const std::string token = native::make_token(randomness);
  fmt::print("{}\n", json ? nlohmann::ordered_json{{"token", token}}.dump() : token);
  return 0;
}

}  // namespace ringlet::command
