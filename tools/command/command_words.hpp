#pragma once

#include <string>
#include <vector>

namespace ringlet::command {

/// One option or operand, as shells' completions need to know it.
struct OptionWords {
  std::vector<std::string> names;  // "-n", "--ranks"; none: an operand
  std::string description;         // its first sentence
  std::vector<std::string> choices;
  bool takes_value = false;
  bool is_directory = false;
  bool repeatable = false;
};

/// A subcommand, or one that stands below it: "pair", "pair accept".
struct CommandWords {
  std::vector<std::string> path;
  std::string summary;
  std::vector<OptionWords> options;
  std::vector<std::string> below;  // names of those that stand below it
  bool starts_program = false;     // what follows `--` is another command
};

/// All subcommands of the table with the options that they declare, in its order.
std::vector<CommandWords> collect_command_words();

}  // namespace ringlet::command
