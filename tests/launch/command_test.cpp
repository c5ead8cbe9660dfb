#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

namespace {

std::vector<std::string> operator+(std::vector<std::string> left, const std::vector<std::string>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// Returns every subcommand that the command itself lists, with the subcommands below it.
std::vector<Json> all_commands() {
  const Outcome listed = run_command({"completion", "--json"});
  REQUIRE(listed.exit_code == 0);
  return Json::parse(listed.out)["commands"].get<std::vector<Json>>();
}

bool has_option(const Json& command, const std::string& name) {
  return std::any_of(command["options"].begin(), command["options"].end(), [&](const Json& option) {
    const auto names = option["names"].get<std::vector<std::string>>();
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

/// Runs a shell script that finds the file of `ringlet`'s completions as $1, and returns what the shell prints.
std::vector<std::string> ask_shell(const std::string& shell, const std::string& script) {
  TemporaryDirectory directory;
  const std::string completions = directory.path() + "/completions", asked = directory.path() + "/asked";
  std::ofstream(completions) << run_command({"completion", shell}).out;
  std::ofstream(asked) << script;
  const std::string output = directory.path() + "/output";
  const std::string line = shell + " " + asked + " " + completions + " >" + output + " 2>&1 </dev/null";
  INFO(script);
  const int status = std::system(line.c_str());
  const std::string told = read_file(output);
  CAPTURE(told);
  REQUIRE(status == 0);
  return sorted_lines(told);
}

/// Returns what bash would offer for the last of `words`.
std::vector<std::string> complete_in_bash(const std::string& words) {
  return ask_shell("bash", "source \"$1\"\nCOMP_WORDS=(" + words +
                               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                               "[[ $(complete -p ringlet) == *_ringlet* ]] && _ringlet && printf '%s\\n' \"${COMPREPLY[@]}\"\n");
}

bool is_here(const char* program) { return std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) == 0; }

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("every subcommand has help with an example and its exit codes, --json, and refuses what it does not know with 2") {
  const std::vector<Json> commands = all_commands();
  CHECK(commands.size() >= 8);
  for (const Json& command : commands) {
    const auto path = command["command"].get<std::vector<std::string>>();
    CAPTURE(path);
    CHECK(has_option(command, "--json"));
    CHECK(has_option(command, "--help"));
    CHECK_FALSE(command["summary"].get<std::string>().empty());
    for (const char* flag : {"--help", "-h"}) {
      const Outcome help = run_command(path + Words{flag});
      CHECK(help.exit_code == 0);
      CHECK(help.err.empty());
      CHECK_THAT(help.out, Contains("Example:\n  ") && Contains("ringlet " + path.front()) && Contains("Exit code") && !Contains("\x1b"));
    }
    const Outcome mistake = run_command(path + Words{"--no-such-option", "--", "true"});
    CAPTURE(mistake.err);
    CHECK(mistake.exit_code == 2);
    CHECK(mistake.out.empty());
    CHECK_THAT(mistake.err, StartsWith("ringlet " + path.front()) && Contains("--help"));
  }
}

TEST_CASE("the command itself has help with an example") {
  for (const char* word : {"--help", "-h", "help"}) {
    const Outcome help = run_command({word});
    CHECK(help.exit_code == 0);
    CHECK(help.err.empty());
    CHECK_THAT(help.out, Contains("Example:\n  ringlet "));
    for (const Json& command : all_commands()) CHECK_THAT(help.out, Contains("\n  " + command["command"][0].get<std::string>() + " "));
  }
  const Outcome bare = run_command({});
  CHECK(bare.exit_code == 2);
  CHECK_THAT(bare.err, Contains("Subcommands:"));
}

TEST_CASE("each token is another, also as JSON") {
  const std::string token = run_command({"token"}).out;
  CHECK(token.size() == 35);
  const auto other = Json::parse(run_command({"token", "--json"}).out)["token"].get<std::string>();
  CHECK(other.size() == 34);
  CHECK(other + "\n" != token);
}

TEST_CASE("the version is printed, also as JSON") {
  const std::string text = run_command({"version"}).out;
  CHECK_THAT(text, StartsWith("ringlet 0."));
  CHECK(run_command({"--version"}).out == text);
  CHECK("ringlet " + Json::parse(run_command({"version", "--json"}).out)["version"].get<std::string>() + "\n" == text);
}

TEST_CASE("bash completes subcommands, options, choices and programs") {
  CHECK(complete_in_bash("ringlet la") == Words{"launch"});
  const Words all = complete_in_bash("ringlet ''");
  for (const Json& command : all_commands()) CHECK_THAT(all, Catch::VectorContains(command["command"][0].get<std::string>()));
  CHECK(complete_in_bash("ringlet launch --ra") == Words{"--ranks"});
  CHECK(complete_in_bash("ringlet completion f") == Words{"fish"});
  CHECK(complete_in_bash("ringlet launch -n 2 -- bas") + Words{"bash"} != Words{"bash"});
  // The value of an option is left to the completion of files, which an empty answer asks for.
  CHECK(complete_in_bash("ringlet launch --env --ra") == Words{""});
  for (const Json& command : all_commands())
    for (const Json& option : command["options"])
      for (const auto& name : option["names"].get<Words>()) {
        std::string line = "ringlet";
        for (const auto& word : command["command"].get<Words>()) line += " " + word;
        CHECK_THAT(complete_in_bash(line + " " + name), Catch::VectorContains(name));
      }
}

TEST_CASE("fish completes, where it is installed") {
  if (!is_here("fish")) return;
  const auto complete = [](const std::string& line) { return ask_shell("fish", "source $argv[1]\ncomplete -C '" + line + "'\n"); };
  CHECK_THAT(complete("ringlet la").at(0), StartsWith("launch\t"));
  CHECK_THAT(complete("ringlet launch --ra").at(0), StartsWith("--ranks\t"));
  CHECK(complete("ringlet completion z") == Words{"zsh\tThe shell"});
}

TEST_CASE("zsh takes the script, where it is installed") {
  if (!is_here("zsh")) return;
  CHECK(ask_shell("zsh", "autoload -Uz compinit && compinit -u -D && source \"$1\" && whence -w _ringlet\n") ==
        Words{"_ringlet: function"});
}

TEST_CASE("a shell that is not known is refused with those that are") {
  const Outcome outcome = run_command({"completion", "tcsh"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("tcsh") && Contains("bash") && Contains("zsh") && Contains("fish"));
  CHECK_THAT(run_command({"completion"}).err, Contains("no shell is named"));
}
