#include "tools/command/subcommand.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/command/standard_output.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

/// While this is set, it receives the declared options, and nothing is parsed.
const std::function<void(const CLI::App&)>* visitor = nullptr;

/// Words a mistake that CLI11 found. Its own texts list unexpected words in reverse, and do not say what is wrong with a number.
std::string describe(const CLI::App& app, const CLI::ParseError& error) {
  constexpr std::string_view kConversion = "Could not convert: ";
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return fmt::format("not expected here: {}", fmt::join(app.remaining(), " "));
  const std::size_t equals = text.find(" = ");
  if (text.rfind(kConversion, 0) != 0 || equals == std::string::npos) return text;
  const std::string name = text.substr(kConversion.size(), equals - kConversion.size()), value = text.substr(equals + 3);
  double number = 0;
  const char* what = !CLI::detail::lexical_cast(value, number) ? "give a number"
                     : number != std::floor(number)            ? "give a whole number"
                                                               : "the number is out of range";
  return fmt::format("{} {}: {}", name, value, what);
}

/// An option that names a file and is given no name: the variable of a shell that is not set, for example.
const CLI::Option* find_nameless(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const auto& given = option->results();
    if ((type == "FILE" || type == "DIR") && std::find(given.begin(), given.end(), "") != given.end()) return option;
  }
  return nullptr;
}

}  // namespace

std::optional<int> parse_options(CLI::App& app, Arguments arguments) {
  if (visitor != nullptr) {
    (*visitor)(app);
    return 0;
  }
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    if (const CLI::Option* nameless = find_nameless(app))
      throw CLI::ValidationError(fmt::format("{} '': give a name, or leave the option out", nameless->get_name()));
  } catch (const CLI::Success&) {
    print_out(app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string name = app.get_name();
    return usage_error(name.substr(name.find(' ') + 1), describe(app, error));
  }
  return std::nullopt;
}

void visit_options(const Subcommand& subcommand, const std::function<void(const CLI::App&)>& visit) {
  visitor = &visit;
  subcommand.run({});
  visitor = nullptr;
}

bool wants_colours() {
  const char* without = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (without == nullptr || *without == '\0');
}

void print_line(std::string_view text) { print_out(fmt::format("{}\n", text)); }

void print_json(const nlohmann::ordered_json& json) {
  print_line(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int usage_error(std::string_view subcommand, const std::string& what) {
  launch::print_error("ringlet {}: {}\nrun `ringlet {} --help` for its options\n", subcommand, what, subcommand);
  return kUsageError;
}

}  // namespace ringlet::command
