#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/command/subcommand.hpp"
#include "tools/command/table.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/machines/known_machines.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;
using machines::KnownMachine;
using machines::KnownMachines;

constexpr char kMachinesFooter[] = R"(Example:
  ringlet machines --group home
  ringlet machines remove attic --group home

Every machine has a key of its own (Ed25519, made on first use in ~/.config/ringlet/machine), which it proves to the others besides the token.
Shows this machine's key and those of the machines that are known here: `paired` by a code, `added` by hand, or `seen` when they first came with
the right token. The fingerprint of a machine that was only seen can be compared with what `ringlet machines` shows there. `ringlet run` gives
work to a machine only if it proves the key that is known by its name, and `ringlet up` starts programs only for machines that are trusted.
`remove` trusts a machine no more: neither command works with its key, and from then on unknown keys are refused here, too, since it could make
another one; pair those that are to take part, or add them. It still has the token: it can join ranks that are started by hand with that.
Exit codes: 0 done; 1 there is no such machine, or a file cannot be read or kept safely; 2 a mistake on the command line.)";

struct MachinesLine {
  std::string group = "home";
  std::string name, other;  // NAME and KEY, or OLD and NEW
  bool replace = false;
  bool json = false;
};

void declare_common(CLI::App& app, MachinesLine& line) {
  app.add_option("--group", line.group, "The group's name")->capture_default_str()->type_name("NAME");
  app.add_flag("--json", line.json, "Print JSON");
}

Json to_json(const KnownMachine& machine) {
  return {{"name", machine.name},
          {"fingerprint", machines::fingerprint(machine.key)},
          {"key", machines::to_hex(machine.key)},
          {"trust", machines::to_string(machine.trust)}};
}

void list(const MachinesLine& line, const machines::PublicKey& own, const std::vector<KnownMachine>& known) {
  if (line.json) {
    Json all = Json::array();
    for (const KnownMachine& machine : known) all.push_back(to_json(machine));
    return print_json({{"group", line.group},
                       {"own", {{"name", announced_name()}, {"fingerprint", machines::fingerprint(own)}, {"key", machines::to_hex(own)}}},
                       {"machines", all}});
  }
  print_line(fmt::format("this machine, {}: {}\n  its whole key: {}", announced_name(), machines::fingerprint(own), machines::to_hex(own)));
  if (known.empty()) return print_line(fmt::format("no other machine is known in group {}", line.group));
  std::vector<Cells> rows{{"machine", "fingerprint", "trust"}};
  for (const KnownMachine& machine : known)
    rows.push_back({machine.name, machines::fingerprint(machine.key), std::string(machines::to_string(machine.trust))});
  for (const std::string& row : aligned(rows)) print_line(row);
}

/// Tells what was done with a machine.
void tell(const MachinesLine& line, const char* event, const std::string& name, const machines::PublicKey& key, const std::string& text) {
  if (line.json)
    print_json({{"event", event}, {"name", name}, {"group", line.group}, {"fingerprint", machines::fingerprint(key)}});
  else
    print_line(text);
}

}  // namespace

int run_machines(Arguments arguments) {
  MachinesLine line;
  CLI::App app("Shows the machines whose keys are known here, renames them, adds and removes them.", "ringlet machines");
  app.footer(kMachinesFooter);
  declare_common(app, line);
  app.require_subcommand(0, 1);
  auto* rename = app.add_subcommand("rename", "Call a known machine otherwise, because it calls itself so now");
  rename->add_option("OLD", line.name, "The name by which it is known")->required();
  rename->add_option("NEW", line.other, "Its new name")->required();
  auto* remove = app.add_subcommand("remove", "Trust a machine no more");
  remove->add_option("NAME", line.name, "The machine's name")->required();
  auto* add = app.add_subcommand("add", "Trust a machine by its whole key, as `ringlet machines` shows it there");
  add->add_option("NAME", line.name, "The machine's name")->required();
  add->add_option("KEY", line.other, "Its whole key, 64 hexadecimal digits")->required();
  add->add_flag("--replace", line.replace, "Put the key in the place of the one that is known by this name");
  for (CLI::App* below : {rename, remove, add}) declare_common(*below, line);
  if (const auto over = parse_options(app, arguments)) return *over;

  if (const auto mistake = find_group_mistake(line.group)) return usage_error("machines", *mistake);
  const auto key = machines::parse_public_key(line.other);
  if (add->parsed() && !key) return usage_error("machines", fmt::format("KEY '{}': give 64 hexadecimal digits", line.other));
  for (const std::string* name : {&line.name, rename->parsed() ? &line.other : &line.name})
    if (const auto mistake = machines::find_name_mistake(*name); mistake && !app.get_subcommands().empty())
      return usage_error("machines", *mistake);

  const machines::PublicKey own = machines::MachineKey::load(native::process_variable).public_key();
  const KnownMachines known(line.group, own, native::process_variable);
  if (rename->parsed()) {
    known.rename(line.name, line.other);
    print_line(line.json ? Json{{"event", "renamed"}, {"name", line.name}, {"group", line.group}, {"new_name", line.other}}.dump()
                         : fmt::format("{} is known as {} in group {} now", line.name, line.other, line.group));
  } else if (remove->parsed()) {
    const machines::PublicKey removed = known.remove(line.name);
    tell(line, "removed", line.name, removed,
         fmt::format("{} ({}) is removed from group {}; from now on unknown keys are refused here, until they are paired or added",
                     line.name, machines::fingerprint(removed), line.group));
  } else if (add->parsed()) {
    known.add(line.name, *key, line.replace ? tokens::Replace::yes : tokens::Replace::no);
    tell(line, "added", line.name, *key,
         fmt::format("{} ({}) is trusted in group {} now", line.name, machines::fingerprint(*key), line.group));
  } else {
    list(line, own, known.load());
  }
  return 0;
}

}  // namespace ringlet::command
