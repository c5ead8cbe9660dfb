#include "tools/discovery/directory.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace ringlet::discovery {
namespace {

constexpr Duration kBetweenQuestions = Duration::seconds(1);
// An answer may be this much longer than the previous beacon, because its numbers grow.
constexpr std::size_t kGrowth = 16;

void see(Machine& machine, const DatagramSource& from, Instant now) {
  auto& sightings = machine.sightings;
  const auto same = [&](const Sighting& one) { return one.from.address == from.address; };
  if (const auto found = std::find_if(sightings.begin(), sightings.end(), same); found != sightings.end()) {
    *found = {from, now};
    return;
  }
  if (sightings.size() == kMaxSightings) {
    const auto oldest = std::min_element(sightings.begin(), sightings.end(), [](const auto& a, const auto& b) { return a.last < b.last; });
    sightings.erase(oldest);
  }
  sightings.push_back({from, now});
}

/// Handles a beacon that arrives again, for instance on another interface. It may add an address, but not replace one.
void see_again(Machine& machine, const DatagramSource& from, Instant now) {
  const bool known = std::any_of(machine.sightings.begin(), machine.sightings.end(),
                                 [&](const Sighting& one) { return one.from.address == from.address; });
  if (known || machine.sightings.size() < kMaxSightings) see(machine, from, now);
}

bool differs_visibly(Profile one, Profile other) {
  for (Profile* profile : {&one, &other})
    for (Device& device : profile->devices) device.free_memory_bytes = 0;
  return one != other;
}

bool lists(const Profile& profile, const IpAddress& address) {
  return std::any_of(profile.interfaces.begin(), profile.interfaces.end(), [&](const NetworkInterface& interface) {
    return std::find(interface.addresses.begin(), interface.addresses.end(), address) != interface.addresses.end();
  });
}

}  // namespace

const DatagramSource& best_source(const Machine& machine) {
  const auto remoteness = [&](const Sighting& one) {
    const IpAddress& address = one.from.address;
    return (lists(machine.profile, address) ? 0 : 4) + (address.is_link_local() ? 2 : 0) +
           (address.family() == IpAddress::Family::v6 ? 1 : 0);
  };
  return std::min_element(machine.sightings.begin(), machine.sightings.end(),
                          [&](const auto& a, const auto& b) { return remoteness(a) < remoteness(b); })
      ->from;
}

std::vector<const Machine*> Directory::find(const std::function<bool(const Machine&)>& wanted) const {
  std::vector<const Machine*> found;
  for (const auto& [instance, machine] : machines_)
    if (wanted(machine)) found.push_back(&machine);
  // They are in the order of their instances.
  std::stable_sort(found.begin(), found.end(),
                   [](const Machine* one, const Machine* other) { return one->profile.name < other->profile.name; });
  return found;
}

bool Directory::hears(const IpAddress& address) const {
  return std::any_of(machines_.begin(), machines_.end(), [&](const auto& entry) {
    const auto& sightings = entry.second.sightings;
    return std::any_of(sightings.begin(), sightings.end(), [&](const Sighting& one) { return one.from.address == address; });
  });
}

bool Directory::take(const Beacon& beacon, const DatagramSource& from, Instant now) {
  if (beacon.kind == Beacon::Kind::query) return false;
  const auto found = machines_.find(beacon.instance);
  if (found == machines_.end()) return beacon.kind == Beacon::Kind::presence && admit(beacon, from, now);
  Machine& machine = found->second;
  if (beacon.sequence <= machine.sequence) {
    if (beacon.sequence == machine.sequence) see_again(machine, from, now);
    return false;
  }
  machine.sequence = beacon.sequence;
  if (beacon.kind == Beacon::Kind::goodbye) {
    remove(found);
    return true;
  }
  std::erase_if(machine.sightings, [&](const Sighting& one) { return now - one.last > limits_.silence; });
  see(machine, from, now);
  machine.last_heard = now;
  machine.beacons = std::min(machine.beacons + 1, limits_.established_beacons);
  const bool changed = differs_visibly(machine.profile, beacon.profile);
  machine.profile = beacon.profile;
  if (changed) on_change_(Change::changed, machine);
  return true;
}

bool Directory::admit(const Beacon& beacon, const DatagramSource& from, Instant now) {
  const auto departed =
      std::find_if(departed_.begin(), departed_.end(), [&](const Departed& one) { return one.instance == beacon.instance; });
  if (departed != departed_.end() && beacon.sequence <= departed->sequence) return false;
  if (!make_room(from.address, now)) return false;
  Machine machine;
  machine.instance = beacon.instance;
  machine.profile = beacon.profile;
  machine.first_heard = machine.last_heard = machine.last_asked = now;
  machine.sequence = beacon.sequence;
  machine.beacons = 1;
  machine.sightings.push_back({from, now});
  const auto place = machines_.emplace(beacon.instance, std::move(machine)).first;
  on_change_(Change::appeared, place->second);
  return true;
}

bool Directory::make_room(const IpAddress& address, Instant now) {
  std::map<IpAddress, std::size_t> count;
  for (const auto& [instance, machine] : machines_)
    for (const Sighting& one : machine.sightings) ++count[one.from.address];
  const std::size_t own = count[address];
  if (own >= limits_.machines_per_address) return false;
  if (machines_.size() < limits_.machines) return true;
  const auto place = find_replaceable(count, own, now);
  if (place == machines_.end()) return false;
  remove(place);
  return true;
}

/// A machine that may make room for another from an address that has `own`: one that has not become established in time, or the one that
/// was heard of last from the address that has the most, and at least two more.
Directory::Place Directory::find_replaceable(const std::map<IpAddress, std::size_t>& count, std::size_t own, Instant now) {
  const auto unestablished = std::find_if(machines_.begin(), machines_.end(), [&](const auto& entry) {
    return entry.second.beacons < limits_.established_beacons && now - entry.second.first_heard > limits_.probation;
  });
  if (unestablished != machines_.end()) return unestablished;
  // A machine with several addresses counts where it has the least company.
  const auto company = [&](const Machine& machine) {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const Sighting& one : machine.sightings) least = std::min(least, count.at(one.from.address));
    return least;
  };
  const auto expendability = [&](const Machine& machine) { return std::tuple(company(machine), machine.first_heard); };
  const auto found = std::max_element(machines_.begin(), machines_.end(), [&](const auto& one, const auto& other) {
    return expendability(one.second) < expendability(other.second);
  });
  return company(found->second) >= own + 2 ? found : machines_.end();
}

void Directory::remove(Place place) {
  const auto node = machines_.extract(place);
  const Machine& machine = node.mapped();
  std::erase_if(departed_, [&](const Departed& one) { return one.instance == machine.instance; });
  if (departed_.size() >= limits_.departed) departed_.pop_front();
  departed_.push_back({machine.instance, machine.sequence});
  on_change_(Change::left, machine);
}

void Directory::expire(Instant now) {
  for (auto place = machines_.begin(); place != machines_.end();) {
    const auto current = place++;
    if (now - current->second.last_heard >= limits_.silence) remove(current);
  }
}

Instant Directory::next_question(const Machine& machine) const {
  return std::max(machine.last_heard + limits_.patience, machine.last_asked + kBetweenQuestions);
}

std::vector<BeaconQuery> Directory::ask_silent(Instant now) {
  std::vector<BeaconQuery> questions;
  for (auto& [instance, machine] : machines_) {
    if (next_question(machine) > now) continue;
    machine.last_asked = now;
    const Beacon expected{Beacon::Kind::presence, instance, machine.sequence, machine.profile};
    const std::size_t bytes = encode_beacon(expected).size() + kGrowth;
    for (const Sighting& one : machine.sightings) questions.push_back({one.from, bytes});
  }
  return questions;
}

std::optional<Instant> Directory::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& [instance, machine] : machines_) {
    const Instant deadline = std::min(machine.last_heard + limits_.silence, next_question(machine));
    if (!next || deadline < *next) next = deadline;
  }
  return next;
}

std::string describe_other_groups(const Directory& directory, const std::string& group) {
  std::map<std::string, std::string> names;
  for (const auto& [instance, machine] : directory.machines()) {
    if (machine.profile.group == group || machine.profile.pairing_port != 0) continue;
    std::string& list = names[machine.profile.group];
    list += (list.empty() ? "" : ", ") + machine.profile.name;
  }
  std::string text;
  for (const auto& [other, list] : names) text += (text.empty() ? "" : ", ") + other + " (" + list + ")";
  return text;
}

}  // namespace ringlet::discovery
