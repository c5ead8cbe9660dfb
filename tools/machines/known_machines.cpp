#include "tools/machines/known_machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/refuse.hpp"
#include "tools/tokens/saved_token.hpp"

namespace ringlet::machines {

namespace {

using tokens::PrivateFolder;

constexpr std::size_t kMaxMachineNameBytes = 64;
constexpr std::size_t kMaxListBytes = 256 * 1024;
constexpr std::array kTrusts{Trust::paired, Trust::added, Trust::seen, Trust::removed};
constexpr tokens::FolderWords kListWords{"the keys of known machines", "look whether a key was changed (`ringlet machines` shows them)",
                                         "it is no list of machines; look what happened to it, or remove it and pair again"};

bool is_known_as(const KnownMachine& machine, const std::string& name) { return machine.trust != Trust::removed && machine.name == name; }

template <class Machines>
auto find_name(Machines& machines, const std::string& name) {
  return std::find_if(machines.begin(), machines.end(), [&](const KnownMachine& machine) { return is_known_as(machine, name); });
}

const KnownMachine* find_key(const std::vector<KnownMachine>& machines, const PublicKey& key) {
  const auto found = std::find_if(machines.begin(), machines.end(), [&](const KnownMachine& machine) { return machine.key == key; });
  return found == machines.end() ? nullptr : &*found;
}

std::size_t count_removed(const std::vector<KnownMachine>& machines) {
  return static_cast<std::size_t>(
      std::count_if(machines.begin(), machines.end(), [](const KnownMachine& machine) { return machine.trust == Trust::removed; }));
}

bool is_full(const std::vector<KnownMachine>& machines) { return machines.size() - count_removed(machines) >= KnownMachines::kMaxKnown; }

std::optional<KnownMachine> parse_line(std::string_view line) {
  const std::size_t space = line.find(' '), next = line.find(' ', space + 1);
  if (space == std::string_view::npos || next == std::string_view::npos) return std::nullopt;
  const auto trust = std::find_if(kTrusts.begin(), kTrusts.end(), [&](Trust one) { return to_string(one) == line.substr(0, space); });
  const auto key = parse_public_key(line.substr(space + 1, next - space - 1));
  std::string name(line.substr(next + 1));
  if (trust == kTrusts.end() || !key || find_name_mistake(name)) return std::nullopt;
  return KnownMachine{std::move(name), *key, *trust};
}

std::string list_text(const std::vector<KnownMachine>& machines) {
  std::string text;
  for (const KnownMachine& machine : machines)
    text += fmt::format("{} {} {}\n", to_string(machine.trust), to_hex(machine.key), machine.name);
  return text;
}

/// Returns the name, with a number behind it if another machine has it. There is one, since a list has a bound.
std::string free_name(const std::vector<KnownMachine>& machines, const std::string& name) {
  std::string free = name;
  for (std::size_t number = 2; find_name(machines, free) != machines.end(); ++number) {
    const std::string suffix = fmt::format(" ({})", number);
    free = std::string(cut_text(name, kMaxMachineNameBytes - suffix.size())) + suffix;
  }
  return free;
}

}  // namespace

std::string_view to_string(Trust trust) {
  switch (trust) {
    case Trust::paired:
      return "paired";
    case Trust::added:
      return "added";
    case Trust::seen:
      return "seen";
    default:
      return "removed";
  }
}

std::optional<std::string> find_name_mistake(const std::string& name) {
  if (!name.empty() && name.size() <= kMaxMachineNameBytes && is_printable(name)) return std::nullopt;
  return fmt::format("machine '{}': give a name of 1 to {} bytes of UTF-8 without control characters",
                     printable(cut_text(name, kMaxMachineNameBytes)), kMaxMachineNameBytes);
}

KnownMachines::KnownMachines(std::string group, const PublicKey& own, Variables variables)
    : group_(std::move(group)), own_(own), variables_(std::move(variables)) {
  if (auto mistake = tokens::find_group_mistake(group_)) refuse(std::move(*mistake));
}

std::string KnownMachines::folder_path() const { return tokens::config_folder(variables_, kListWords.contents) + "/machines"; }

KnownMachines::Machines KnownMachines::read(const PrivateFolder& folder) const {
  const std::string text = folder.read(group_, kMaxListBytes).value_or("");
  Machines machines;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    ++number;
    std::optional<KnownMachine> machine = parse_line(rest.substr(0, end));
    if (!machine)
      refuse(fmt::format("'{}', line {}, is not \"paired|added|seen|removed KEY NAME\"; mend it or remove that line",
                         folder.path_of(group_), number));
    if (machine->trust != Trust::removed && find_name(machines, machine->name) != machines.end())
      refuse(fmt::format("'{}', line {}: {} stands there twice; remove the line with the wrong key", folder.path_of(group_), number,
                         machine->name));
    machines.push_back(std::move(*machine));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return machines;
}

KnownMachines::Machines KnownMachines::load() const {
  const auto folder = PrivateFolder::open(folder_path(), PrivateFolder::Access::owner_only, kListWords);
  return folder ? read(*folder) : Machines();
}

template <class Change>
void KnownMachines::rewrite(Change change) const {
  const PrivateFolder folder = PrivateFolder::make(folder_path(), PrivateFolder::Access::owner_only, kListWords);
  const auto lock = folder.lock();
  const Machines before = read(folder);
  Machines machines = before;
  change(machines);
  while (count_removed(machines) > kMaxRemoved)
    machines.erase(std::find_if(machines.begin(), machines.end(), [](const auto& machine) { return machine.trust == Trust::removed; }));
  if (machines != before) (void)folder.write(group_, list_text(machines), tokens::Replace::yes);
}

template <class Judge>
Acquaintance KnownMachines::meet(const PublicKey& key, Judge judge) const {
  Acquaintance found = judge(load());
  if (!found.first) return found;
  // Another process may have met a machine of this name meanwhile.
  rewrite([&](Machines& machines) {
    found = judge(machines);
    if (found.first) machines.push_back({found.name, key, Trust::seen});
  });
  return found;
}

Acquaintance KnownMachines::meet_asking(const std::string& name, const PublicKey& key) const {
  std::string told(cut_text(printable(name), kMaxMachineNameBytes));
  if (told.empty()) told = "unnamed";
  return meet(key, [&](const Machines& machines) { return judge_asking(machines, told, key); });
}

Acquaintance KnownMachines::meet_answering(const std::string& name, const PublicKey& key) const {
  if (auto mistake = find_name_mistake(name)) return {false, std::move(*mistake)};
  return meet(key, [&](const Machines& machines) { return judge_answering(machines, name, key); });
}

Acquaintance KnownMachines::judge_asking(const Machines& machines, const std::string& name, const PublicKey& key) const {
  if (key == own_) return {};
  const auto owner_with = [&](std::string_view option) {
    return fmt::format(
        "the owner of the machine that was asked would have to pair it (`ringlet pair --group {0}`), or to run `ringlet machines add {1} "
        "{2} "
        "--group {0}{3}` there",
        group_, name, to_hex(key), option);
  };
  const std::string owner = owner_with("");
  const KnownMachine* same_key = find_key(machines, key);
  if (same_key != nullptr && same_key->trust == Trust::removed)
    return {false, fmt::format("{} with the key {} was removed from group {}; {}", name, fingerprint(key), group_, owner)};
  if (same_key != nullptr) return {};
  if (const auto known = find_name(machines, name); known != machines.end() && known->trust != Trust::seen)
    return {false,
            fmt::format("{0} is known here by the key {1}, and came with the key {2}; where two machines are called {0}, give the one "
                        "that asks another name (`--name`); where it was set up anew, {3}",
                        name, fingerprint(known->key), fingerprint(key), owner_with(" --replace"))};
  if (count_removed(machines) > 0)
    return {false, fmt::format("{} with the key {} is not known here, and group {} is closed since a machine was removed from it; {}", name,
                               fingerprint(key), group_, owner)};
  if (is_full(machines))
    return {false, fmt::format("{} machines are known in group {} already; its owner would have to remove one (`ringlet machines`)",
                               kMaxKnown, group_)};
  return {true, "", free_name(machines, name)};
}

Acquaintance KnownMachines::judge_answering(const Machines& machines, const std::string& name, const PublicKey& key) const {
  const auto advice_with = [&](std::string_view option) {
    return fmt::format(
        "compare with `ringlet machines` there; then pair it (`ringlet pair --group {0}`), or run `ringlet machines add {1} {2} --group "
        "{0}{3}`",
        group_, name, to_hex(key), option);
  };
  const std::string advice = advice_with("");
  const KnownMachine* same_key = find_key(machines, key);
  if (same_key != nullptr && same_key->trust == Trust::removed)
    return {false, fmt::format("{} has the key {}, which was removed from group {}; if it is to take part again, {}", name,
                               fingerprint(key), group_, advice)};
  if (const auto known = find_name(machines, name); known != machines.end()) {
    if (known->key == key) return {};
    return {false, fmt::format("{} is not the machine that is known by this name: it has the key {}, and {} was {} with the key {}; where "
                               "it was set up anew, {}; where it is not to take part any more, run `ringlet machines remove {} "
                               "--group {}`",
                               name, fingerprint(key), name, known->trust == Trust::seen ? "first seen" : to_string(known->trust),
                               fingerprint(known->key), advice_with(" --replace"), name, group_)};
  }
  if (key == own_) return {};
  if (same_key == nullptr && count_removed(machines) > 0)
    return {false, fmt::format("{} with the key {} is not known here, and group {} is closed since a machine was removed from it; {}", name,
                               fingerprint(key), group_, advice)};
  if (is_full(machines))
    return {false, fmt::format("{} machines are known in group {} already, so {} cannot be added; remove one (`ringlet machines`)",
                               kMaxKnown, group_, name)};
  return {true, "", name};
}

void KnownMachines::trust_paired(const std::string& name, const PublicKey& key) const {
  if (auto mistake = find_name_mistake(name)) refuse(std::move(*mistake));
  rewrite([&](Machines& machines) {
    std::erase_if(machines, [&](const KnownMachine& machine) {
      return is_known_as(machine, name) || (machine.key == key && machine.trust == Trust::removed);
    });
    // What a person does counts more than what only came by.
    if (is_full(machines)) {
      const auto seen =
          std::find_if(machines.begin(), machines.end(), [](const KnownMachine& machine) { return machine.trust == Trust::seen; });
      if (seen == machines.end())
        refuse(fmt::format("{} machines are known in group {} already; remove one (`ringlet machines`)", kMaxKnown, group_));
      machines.erase(seen);
    }
    machines.push_back({name, key, Trust::paired});
  });
}

void KnownMachines::add(const std::string& name, const PublicKey& key, tokens::Replace replace) const {
  if (auto mistake = find_name_mistake(name)) refuse(std::move(*mistake));
  rewrite([&](Machines& machines) {
    if (const auto known = find_name(machines, name); known != machines.end()) {
      if (known->key == key) {
        if (known->trust == Trust::seen) known->trust = Trust::added;
        return;
      }
      if (replace == tokens::Replace::no)
        refuse(fmt::format("{} is known in group {} by the key {}; --replace puts {} in its place", name, group_, fingerprint(known->key),
                           fingerprint(key)));
      machines.erase(known);
    }
    std::erase_if(machines, [&](const KnownMachine& machine) { return machine.key == key && machine.trust == Trust::removed; });
    if (is_full(machines)) refuse(fmt::format("{} machines are known in group {} already; remove one first", kMaxKnown, group_));
    machines.push_back({name, key, Trust::added});
  });
}

void KnownMachines::rename(const std::string& from, const std::string& to) const {
  if (auto mistake = find_name_mistake(to)) refuse(std::move(*mistake));
  rewrite([&](Machines& machines) {
    const auto found = find_name(machines, from);
    if (found == machines.end()) refuse_unknown(from);
    if (const auto other = find_name(machines, to); other != machines.end() && other != found)
      refuse(fmt::format("{} is the name of another machine of group {}, with the key {}", to, group_, fingerprint(other->key)));
    found->name = to;
  });
}

PublicKey KnownMachines::remove(const std::string& name) const {
  PublicKey key{};
  rewrite([&](Machines& machines) {
    const auto found = find_name(machines, name);
    if (found == machines.end()) refuse_unknown(name);
    key = found->key;
    std::erase_if(machines, [&](const KnownMachine& machine) { return machine.key == key; });
    machines.push_back({name, key, Trust::removed});
  });
  return key;
}

void KnownMachines::refuse_unknown(const std::string& name) const {
  refuse(fmt::format("no machine '{}' is known in group {}; `ringlet machines --group {}` lists those that are", printable(name), group_,
                     group_));
}

}  // namespace ringlet::machines
