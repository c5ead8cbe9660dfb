#include "tools/command/completion_scripts.hpp"

#include <fmt/format.h>

#include <string_view>

namespace ringlet::command {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

/// Makes the text safe between single quotes. `also` lists letters that have a meaning for the shell's completion there.
std::string quotable(std::string_view text, std::string_view also = "") {
  std::string result;
  for (const char letter : text) {
    if (letter == '\'')
      result += "'\\''";
    else if (also.find(letter) != std::string_view::npos)
      result += std::string("\\") + letter;
    else
      result += letter;
  }
  return result;
}

std::vector<std::string> top_names(std::span<const CommandWords> commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands)
    if (command.path.size() == 1) names.push_back(command.path.front());
  return names;
}

std::vector<std::string> words_after(const CommandWords& command) {
  std::vector<std::string> words = command.below;
  for (const OptionWords& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
    if (option.names.empty()) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  if (command.starts_program) words.emplace_back("--");
  return words;
}

std::string bash_case(const CommandWords& command) {
  std::string text = fmt::format("    '{}')\n      case $previous in\n", joined(command.path));
  for (const OptionWords& option : command.options) {
    if (!option.takes_value || option.names.empty()) continue;
    // An empty answer makes the shell complete file names.
    std::string answer;
    if (!option.choices.empty()) answer = fmt::format(" COMPREPLY=($(compgen -W '{}' -- \"$word\"));", joined(option.choices));
    if (option.is_directory) answer = " COMPREPLY=($(compgen -d -- \"$word\"));";
    text += fmt::format("        {}){} return ;;\n", joined(option.names, "|"), answer);
  }
  return text + fmt::format("      esac\n      words='{}'\n      ;;\n", joined(words_after(command)));
}

std::string zsh_argument(const OptionWords& option) {
  const std::string description = quotable(option.description, "[]:\\");
  std::string action = option.is_directory ? "_directories" : option.choices.empty() ? "_files" : "(" + joined(option.choices) + ")";
  if (option.names.empty()) return fmt::format("'1:{}:{}'", description, action);
  const std::string value = option.takes_value ? fmt::format(":{}:{}", option.names.back().substr(2), action) : "";
  // All names of an option exclude each other and have the same text.
  const std::string once = option.repeatable ? "*" : "(" + joined(option.names) + ")";
  std::string text;
  for (const std::string& name : option.names)
    text += fmt::format("{}'{}{}[{}]{}'", text.empty() ? "" : " \\\n        ", once, name, description, value);
  return text;
}

std::string zsh_case(const CommandWords& command) {
  std::string text = fmt::format("    '{}')\n      _arguments", joined(command.path));
  for (const OptionWords& option : command.options) text += " \\\n        " + zsh_argument(option);
  if (!command.below.empty()) text += fmt::format(" \\\n        '1:subcommand:({})'", joined(command.below));
  return text + "\n      ;;\n";
}

}  // namespace

std::string bash_completion(std::span<const CommandWords> commands) {
  std::string cases, nested;
  for (const CommandWords& command : commands) {
    cases += bash_case(command);
    if (command.path.size() > 1) nested += fmt::format("{}'{}'", nested.empty() ? "" : "|", joined(command.path));
  }
  // The shell needs a pattern even if there are no nested commands; this one matches nothing.
  if (nested.empty()) nested = "''";
  return fmt::format(R"(# bash completion for ringlet
_ringlet() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words='' i
  COMPREPLY=()
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$word")); fi
      return
    fi
    case "$command ${{COMP_WORDS[i]}}" in {}) command+=" ${{COMP_WORDS[i]}}" ;; esac
  done
  if ((COMP_CWORD < 2)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case $command in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _ringlet ringlet
)",
                     nested, joined(top_names(commands)), cases);
}

std::string zsh_completion(std::span<const CommandWords> commands) {
  std::string summaries, cases;
  for (const CommandWords& command : commands) {
    if (command.path.size() == 1) summaries += fmt::format("    '{}:{}'\n", command.path.front(), quotable(command.summary, ":\\"));
    cases += zsh_case(command);
  }
  return fmt::format(R"(#compdef ringlet
_ringlet() {{
  local -a subcommands
  local i command
  subcommands=(
{}  )
  if ((CURRENT == 2)); then
    _describe subcommand subcommands
    return
  fi
  for ((i = 3; i < CURRENT; ++i)); do
    if [[ $words[i] == -- ]]; then
      words=("${{(@)words[i+1,-1]}}")
      ((CURRENT -= i))
      _normal
      return
    fi
  done
  shift words
  ((CURRENT--))
  command=$words[1]
  case $command in
{}  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _ringlet "$@"; else compdef _ringlet ringlet; fi
)",
                     summaries, cases);
}

std::string fish_completion(std::span<const CommandWords> commands) {
  std::string text = "# fish completion for ringlet\ncomplete -c ringlet -f\n";
  for (const CommandWords& command : commands) {
    std::string condition = "__fish_use_subcommand";
    for (std::size_t i = 0; i + 1 < command.path.size(); ++i)
      condition = (i == 0 ? "" : condition + "; and ") + "__fish_seen_subcommand_from " + command.path[i];
    text += fmt::format("complete -c ringlet -n '{}' -a {} -d '{}'\n", condition, command.path.back(), quotable(command.summary, "\\"));
    std::string inside;
    for (const std::string& word : command.path) inside += (inside.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
    for (const OptionWords& option : command.options) {
      text += fmt::format("complete -c ringlet -n '{}'", inside);
      for (const std::string& name : option.names) text += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.takes_value && !option.names.empty()) text += option.choices.empty() ? " -r -F" : " -x";
      if (!option.choices.empty()) text += fmt::format(" -a '{}'", joined(option.choices));
      text += fmt::format(" -d '{}'\n", quotable(option.description, "\\"));
    }
    if (command.starts_program) text += fmt::format("complete -c ringlet -n '{}; and contains -- -- (commandline -opc)' -F\n", inside);
  }
  return text;
}

}  // namespace ringlet::command
