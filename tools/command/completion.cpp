#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/command/completion_scripts.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/subcommand.hpp"

namespace ringlet::command {

namespace {

constexpr char kCompletionFooter[] = R"(Example:
  source <(ringlet completion bash)

`cmake --install` puts the scripts where bash, zsh and fish look for them. For this user alone:
  bash  ringlet completion bash > ~/.local/share/bash-completion/completions/ringlet
  zsh   ringlet completion zsh > "${fpath[1]}/_ringlet"
  fish  ringlet completion fish > ~/.config/fish/completions/ringlet.fish
Without SHELL, --json prints all subcommands with their options, for tools that make completions of their own.
Exit codes: 0; 2 a mistake on the command line.)";

nlohmann::ordered_json to_json(const OptionWords& option) {
  return {{"names", option.names}, {"description", option.description}, {"takes_value", option.takes_value}, {"choices", option.choices}};
}

nlohmann::ordered_json to_json(std::span<const CommandWords> commands) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CommandWords& command : commands) {
    nlohmann::ordered_json options = nlohmann::ordered_json::array();
    for (const OptionWords& option : command.options) options.push_back(to_json(option));
    all.push_back({{"command", command.path}, {"summary", command.summary}, {"options", options}});
  }
  return {{"commands", all}};
}

}  // namespace

int run_completion(Arguments arguments) {
  std::string shell;
  bool json = false;
  CLI::App app("Prints what makes a shell complete ringlet's words:\n  ringlet completion bash|zsh|fish", "ringlet completion");
  app.footer(kCompletionFooter);
  app.add_option("SHELL", shell, "The shell")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.add_flag("--json", json, "Print JSON");
  if (const auto over = parse_options(app, arguments)) return *over;
  if (shell.empty() && !json)
    return usage_error("completion", "no shell is named; give bash, zsh or fish, as in `ringlet completion bash`");

  const std::vector<CommandWords> commands = collect_command_words();
  const std::string script = shell == "bash"  ? bash_completion(commands)
                             : shell == "zsh" ? zsh_completion(commands)
                                              : fish_completion(commands);
  if (!json)
    print_out(script);
  else
    print_json(shell.empty() ? to_json(commands) : nlohmann::ordered_json{{"shell", shell}, {"script", script}});
  return 0;
}

}  // namespace ringlet::command
