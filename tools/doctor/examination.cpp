#include "tools/doctor/examination.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "tools/agent/machine_search.hpp"
#include "tools/doctor/network_facts.hpp"

namespace ringlet::doctor {

namespace {

constexpr std::chrono::milliseconds kKnockPatience{2'000};
// Named machines answer immediately, and lost datagrams are repeated every second.
constexpr Duration kAskingNamed = Duration::milliseconds(1'500);
constexpr Duration kSurveyPatience = Duration::seconds(60);
constexpr std::size_t kMaxMachines = 32;  // limit for measurements

Reach reach_of(const agent::PathQuality& quality) {
  if (quality.status.ok()) return Reach::good;
  if (quality.stalled) return Reach::stalled;
  if (quality.not_trusted) return Reach::not_trusted;
  switch (quality.status.code()) {
    case Errc::mismatch:
      return Reach::token_differs;
    case Errc::protocol_error:
      return Reach::incompatible;
    case Errc::timed_out:
      return Reach::silent;
    default:
      return Reach::broken;
  }
}

bool runs_on_macos() {
  utsname system{};
  return ::uname(&system) >= 0 && std::string_view(system.sysname) == "Darwin";
}

/// The first counts, since it manages the later ones' rules.
std::string find_firewall_tool() {
  for (const char* tool : {"ufw", "firewall-cmd", "nft"})
    for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/"})
      if (::access((std::string(folder) + tool).c_str(), X_OK) == 0) return tool;
  return {};
}

const PathFacts* best_way(const MachineFacts& machine) {
  const PathFacts* best = nullptr;
  for (const PathFacts& path : machine.paths)
    if (path.reach == Reach::good && (best == nullptr || path.bytes_per_second > best->bytes_per_second)) best = &path;
  return best;
}

}  // namespace

Examination::Examination(UvLoop& loop, ExaminationOptions options)
    : loop_(loop), options_(std::move(options)), network_(loop), authenticator_(options_.token) {
  facts_.name = options_.name;
  facts_.version = options_.version;
  facts_.group = options_.group;
  facts_.has_token = !options_.token.empty();
  facts_.discovery_port = options_.datagrams.port;
  facts_.macos = runs_on_macos();
  facts_.firewall_tool = find_firewall_tool();
}

Result<Facts> Examination::run() {
  facts_.interfaces = interface_facts();
  const auto& named = options_.datagrams.interfaces;
  for (InterfaceFacts& one : facts_.interfaces) one.named = std::find(named.begin(), named.end(), one.name) != named.end();
  tell("listening for other machines");
  if (Status status = listen(false); !status.ok()) return status;
  if (!options_.peers.empty() && !stopped()) {
    tell("asking those who were named");
    if (Status status = listen(true); !status.ok()) return status;
  }
  note_peers();
  note_machines();
  if (options_.matrix && !stopped()) measure_matrix();
  return std::move(facts_);
}

void Examination::tell(const std::string& what) const {
  if (options_.on_progress) options_.on_progress(what);
}

void Examination::run_until(const std::function<bool()>& condition) {
  while (!condition() && !stopped()) loop_.wait();
}

Status Examination::listen(bool named) {
  UvDatagramsOptions datagram_options = options_.datagrams;
  datagram_options.hears_shared_port = false;
  if (!named) datagram_options.peers.clear();
  UvDatagrams datagrams(loop_, std::move(datagram_options));
  discovery::Discovery discovery(loop_, datagrams, {.seed = options_.seed + (named ? 1 : 0), .profile = {}, .devices = {}, .limits = {}},
                                 [](discovery::Change, const discovery::Machine&) {});
  discovery.start();
  if (Status status = datagrams.status(); !status.ok()) return status;
  bool over = false;
  loop_.after(named ? kAskingNamed : options_.listening, [&over] { over = true; });
  run_until([&over] { return over; });
  if (!named) facts_.heard_itself = discovery.heard_itself();
  for (const auto& [instance, machine] : discovery.directory().machines()) heard_.try_emplace(instance, Heard{machine, !named});
  discovery.leave();
  return {};
}

void Examination::note_peers() {
  for (std::size_t i = 0; i < options_.peers.size(); ++i) {
    const Address& address = options_.datagrams.peers[i];
    PeerFacts peer;
    peer.name = options_.peers[i];
    const std::vector<std::string> hosts = resolve(address.host);
    for (const auto& [instance, heard] : heard_)
      for (const discovery::Sighting& sighting : heard.machine.sightings) {
        // A beacon by multicast comes from a port of its own, and tells nothing of another port that was named.
        const bool at_port = address.port == options_.datagrams.port || address.port == sighting.from.port;
        peer.answered =
            peer.answered || (at_port && std::find(hosts.begin(), hosts.end(), to_string(sighting.from.address)) != hosts.end());
      }
    if (!peer.answered && hosts.empty()) {
      peer.knock.emplace();
      peer.knock->to = address;
      peer.knock->reach = Reach::unreachable;
      peer.knock->text = "no such host name";
      peer.unknown = true;
    } else if (!peer.answered) {
      tell(fmt::format("knocking at {}", peer.name));
      std::vector<Address> all;
      for (const std::string& host : hosts) all.push_back({host, address.port});
      auto paths = knock(all, kKnockPatience);
      // The path that got furthest is kept.
      peer.knock = *std::min_element(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.reach < b.reach; });
      peer.neighbour = is_neighbour(peer.knock->to.host);
    }
    facts_.peers.push_back(std::move(peer));
  }
}

void Examination::note_machines() {
  for (const auto& [instance, heard] : heard_) {
    const discovery::Profile& profile = heard.machine.profile;
    // A machine that is only pairing is not up, and may have the name of a machine that is.
    if (profile.pairing_port != 0) continue;
    MachineFacts facts{instance, profile.name, profile.version, profile.group, heard.by_multicast, profile.port};
    const bool of_interest = options_.group.empty() || profile.group == options_.group;
    if (of_interest && facts_.has_token && profile.port != 0 && facts_.machines.size() < kMaxMachines && !stopped())
      examine(facts, heard.machine);
    facts_.machines.push_back(std::move(facts));
  }
  std::sort(facts_.machines.begin(), facts_.machines.end(), [](const MachineFacts& one, const MachineFacts& other) {
    return std::tie(one.name, one.instance) < std::tie(other.name, other.instance);
  });
}

std::vector<Address> Examination::ways_to(const discovery::Machine& machine) const {
  // Link-local addresses are left out, because other addresses reach the same networks, and their scope differs on each machine.
  std::vector<Address> all;
  const Address likeliest = agent::addresses_of(machine, machine.profile.port).front();
  for (const discovery::Sighting& sighting : machine.sightings)
    if (!sighting.from.address.is_link_local()) all.push_back({to_string(sighting.from.address), machine.profile.port});
  if (all.empty()) all.push_back(likeliest);
  for (const NetworkInterface& interface : machine.profile.interfaces)
    for (const IpAddress& address : interface.addresses) {
      Address way{to_string(address), machine.profile.port};
      if (!address.is_link_local() && is_neighbour(way.host) && std::find(all.begin(), all.end(), way) == all.end())
        all.push_back(std::move(way));
    }
  return all;
}

void Examination::examine(MachineFacts& facts, const discovery::Machine& machine) {
  tell(fmt::format("measuring the ways to {}", facts.name));
  facts.paths = knock(ways_to(machine), kKnockPatience);
  for (PathFacts& path : facts.paths)
    if (path.reach == Reach::good && !stopped()) measure(facts, path);
}

void Examination::measure(MachineFacts& facts, PathFacts& path) {
  std::optional<agent::PathQuality> quality;
  const agent::PathProbe probe(loop_, network_, authenticator_, path.to, ends_of(facts),
                               [&quality](const agent::PathQuality& found) { quality = found; });
  run_until([&quality] { return quality.has_value(); });
  if (!quality) return;
  path.reach = reach_of(*quality);
  path.text = quality->status.text();
  path.round_trip = quality->round_trip;
  path.bytes_per_second = quality->bytes_per_second;
  path.rank_port = {quality->rank_port, quality->rank_port_status.text()};
  if (quality->clock_ahead) facts.clock_ahead = quality->clock_ahead;
}

agent::ProbeEnds Examination::ends_of(const MachineFacts& machine) const {
  return {&*options_.identity, machine.group, [this, &machine](const std::string& name, const machines::PublicKey& key) {
            return name == machine.name ? options_.find_doubt(machine.group, name, key)
                                        : fmt::format("{} answers in the place of {}", name, machine.name);
          }};
}

void Examination::measure_matrix() {
  std::vector<const MachineFacts*> reached;
  MatrixRow own{facts_.name, {}};
  for (const MachineFacts& machine : facts_.machines) {
    const PathFacts* best = best_way(machine);
    if (best == nullptr) continue;
    reached.push_back(&machine);
    own.cells.push_back({machine.name, best->round_trip, best->bytes_per_second, "", best->rank_port});
  }
  if (!own.cells.empty()) facts_.matrix.push_back(std::move(own));
  if (reached.size() < 2) return;
  for (const MachineFacts* machine : reached) {
    if (stopped()) return;
    tell(fmt::format("{} measures its ways to the others", machine->name));
    facts_.matrix.push_back(ask_for_row(*machine, reached));
  }
}

MatrixRow Examination::ask_for_row(const MachineFacts& machine, const std::vector<const MachineFacts*>& reached) {
  job::PathSurvey survey;
  std::map<std::uint64_t, std::string> names;
  for (const MachineFacts* other : reached) {
    if (other == &machine || survey.instances.size() == job::kMaxSurveyed) continue;
    survey.instances.push_back(other->instance);
    names[other->instance] = other->name;
  }
  std::optional<job::SurveyedPaths> answer;
  bool over = false;
  std::unique_ptr<job::MessageLink> link;
  Dialler dialler(loop_, network_, authenticator_);
  LinkRequest request;
  request.kind = LinkRequest::Kind::agent;
  dialler.dial(best_way(machine)->to, {}, request, [&](Result<std::unique_ptr<Link>> dialled) {
    if (!dialled.ok()) return void(over = true);
    link = std::make_unique<job::MessageLink>(loop_, std::move(dialled).value(), job::kAgentLimits);
    link->start(
        [&](const job::Message& message) {
          const auto* offer = std::get_if<job::Offer>(&message);
          if (offer != nullptr && (!offer->refusal.empty() || !agent::sender_of(*offer, machine.group, link->binding()))) over = true;
          if (offer != nullptr && !over) link->send(survey);
          if (const auto* surveyed = std::get_if<job::SurveyedPaths>(&message)) answer = *surveyed;
        },
        [&](const Status&) { over = true; });
    link->send(options_.identity->question(machine.group, link->binding()));
  });
  const TimerId timer = loop_.after(kSurveyPatience, [&over] { over = true; });
  run_until([&] { return over || answer.has_value(); });
  loop_.cancel(timer);
  MatrixRow row{machine.name, {}};
  for (const job::SurveyedPath& way : answer ? answer->paths : std::vector<job::SurveyedPath>()) {
    MatrixRow::Cell cell{names[way.instance],
                         {},
                         static_cast<double>(way.bytes_per_second),
                         way.failure,
                         {static_cast<std::uint16_t>(way.rank_port), way.rank_port_failure}};
    if (way.failure.empty()) cell.round_trip = Duration{static_cast<std::int64_t>(way.round_trip_ns)};
    row.cells.push_back(std::move(cell));
  }
  return row;
}

}  // namespace ringlet::doctor
