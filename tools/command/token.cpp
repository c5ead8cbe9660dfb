#include "native/token.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/command/subcommand.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kTokenFooter[] = R"(Example:
  ringlet token > group.token && export RINGLET_TOKEN_FILE=group.token
  ringlet token --save --group home

Every rank of a group needs the same token: in RINGLET_TOKEN, in a file that RINGLET_TOKEN_FILE names, or, for commands that know the group's name,
saved in $XDG_CONFIG_HOME/ringlet/tokens (by default in ~/.config), readable by you alone. `ringlet pair` brings a saved token to another machine
by a short code; by hand, `ringlet token --save --stdin` saves there the one that --show prints here.
Exit codes: 0 done; 1 there is no saved token, or it cannot be kept safely; 2 a mistake on the command line.)";

struct TokenLine {
  std::string group = "home";
  bool save = false;
  bool show = false;
  bool from_stdin = false;
  bool replace = false;
  bool json = false;
};

void declare(CLI::App& app, TokenLine& line) {
  app.footer(kTokenFooter);
  auto* save = app.add_flag("--save", line.save, "Save a fresh token for the group instead of printing it");
  auto* show = app.add_flag("--show", line.show, "Print the token that is saved for the group")->excludes(save);
  app.add_option("--group", line.group, "The group's name")->capture_default_str()->type_name("NAME");
  app.add_flag("--stdin", line.from_stdin, "Save the token that comes by stdin, not a fresh one")->needs(save)->excludes(show);
  app.add_flag("--replace", line.replace, "Save it although there is one already")->needs(save);
  app.add_flag("--json", line.json, "Print JSON");
}

std::string token_of_stdin() {
  constexpr std::size_t kMostBytes = 1 << 16;
  std::string text(kMostBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  if (text.size() > kMostBytes)
    throw InvalidArgument({Errc::invalid_argument, fmt::format("stdin has more than {} bytes, which no token has", kMostBytes)});
  return native::check_token("stdin", text);
}

void print_fresh(const TokenLine& line) {
  const std::string token = fresh_token();
  if (line.json)
    print_json({{"token", token}});
  else
    print_line(token);
}

void show(const TokenLine& line) {
  const std::string path = tokens::saved_token_path(line.group, native::process_variable);
  const auto token = tokens::load_token(line.group, native::process_variable);
  if (!token)
    throw std::runtime_error(
        fmt::format("no token is saved for group {0} ('{1}'); make one with `ringlet token --save --group {0}`, or get the group's from "
                    "another machine with `ringlet pair --join --group {0}`",
                    line.group, path));
  if (line.json)
    print_json({{"group", line.group}, {"path", path}, {"token", *token}});
  else
    print_line(*token);
}

void save_line(const TokenLine& line) {
  const std::string path = tokens::saved_token_path(line.group, native::process_variable);
  const std::string token = line.from_stdin ? token_of_stdin() : fresh_token();
  if (!tokens::save_token(line.group, token, line.replace ? tokens::Replace::yes : tokens::Replace::no, native::process_variable))
    throw std::runtime_error(fmt::format(
        "group {0} has a token already, '{1}'; `ringlet token --show --group {0}` prints it, --replace puts another in its place",
        line.group, path));
  if (line.json)
    print_json({{"group", line.group}, {"path", path}});
  else
    print_line(fmt::format("saved a token for group {} in {}", line.group, path));
}

}  // namespace

int run_token(Arguments arguments) {
  TokenLine line;
  CLI::App app("Makes tokens, and keeps them. Who has the group's token may join it; without one, ranks listen on this machine only.",
               "ringlet token");
  declare(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;
  if (const auto mistake = find_group_mistake(line.group)) return usage_error("token", *mistake);
  if (line.show)
    show(line);
  else if (line.save)
    save_line(line);
  else
    print_fresh(line);
  return 0;
}

}  // namespace ringlet::command
