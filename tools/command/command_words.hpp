#pragma once

#include <string>
#include <vector>

namespace ringlet::command {

/// An option or operand, described for shells' completions.
struct OptionWords {
  std::vector<std::string> names;  // "-n", "--ranks"; empty for an operand
  std::string description;         // the first sentence of its help
  std::vector<std::string> choices;
  bool takes_value = false;
  bool is_directory = false;
  bool repeatable = false;
};

/// A subcommand or a nested one, such as "pair" or "pair accept".
struct CommandWords {
  std::vector<std::string> path;
  std::string summary;
  std::vector<OptionWords> options;
  std::vector<std::string> below;  // names of its nested subcommands
  bool starts_program = false;     // whether another command follows `--`
};

/// Returns all subcommands with the options they declare, in the order of the table in main.cpp.
std::vector<CommandWords> collect_command_words();

}  // namespace ringlet::command
