#include "tools/command/command_words.hpp"

#include <CLI/CLI.hpp>
#include <string_view>

#include "tools/command/subcommand.hpp"

namespace ringlet::command {

namespace {

/// CLI11 appends a value's possible words to its type, in braces: "TEXT:{bash,zsh,fish}".
std::vector<std::string> choices_of(std::string_view type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (close == std::string_view::npos) return choices;
  for (std::string_view rest = type.substr(open + 1, close - open - 1); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    choices.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return choices;
}

std::string first_part(const std::string& text) { return text.substr(0, text.find_first_of(";\n")); }

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  words.description = first_part(option.get_description());
  words.choices = choices_of(option.get_type_name());
  words.takes_value = option.get_items_expected_max() != 0;
  words.is_directory = option.get_type_name() == "DIR";
  words.repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return words;
}

void collect(const CLI::App& app, std::vector<std::string> path, std::string summary, std::vector<CommandWords>& all) {
  CommandWords words;
  words.path = std::move(path);
  words.summary = std::move(summary);
  for (const CLI::Option* option : app.get_options()) words.options.push_back(words_of(*option));
  words.starts_program = app.get_description().find("-- PROGRAM") != std::string::npos;
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* child : below) words.below.push_back(child->get_name());
  const std::vector<std::string> own_path = words.path;
  all.push_back(std::move(words));
  for (const CLI::App* child : below) {
    std::vector<std::string> child_path = own_path;
    child_path.push_back(child->get_name());
    collect(*child, std::move(child_path), first_part(child->get_description()), all);
  }
}

}  // namespace

std::vector<CommandWords> collect_command_words() {
  std::vector<CommandWords> all;
  for (const Subcommand& subcommand : subcommands())
    visit_options(subcommand,
                  [&](const CLI::App& app) { collect(app, {std::string(subcommand.name)}, std::string(subcommand.summary), all); });
  return all;
}

}  // namespace ringlet::command
