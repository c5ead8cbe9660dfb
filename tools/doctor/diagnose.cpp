#include "tools/doctor/diagnose.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "tools/agent/agent.hpp"

namespace ringlet::doctor {

namespace {

// A group with a slower link than this spends most of its time waiting for it.
constexpr double kSlowBytesPerSecond = 50e6 / 8;
constexpr Duration kSlowRoundTrip = Duration::milliseconds(20);
constexpr Duration kClockTolerance = Duration::seconds(5);

std::string megabits(double bytes_per_second) { return fmt::format("{:.3g} Mbit/s", bytes_per_second * 8 / 1e6); }

std::string milliseconds(Duration duration) { return fmt::format("{:.3g} ms", static_cast<double>(duration.nanoseconds) / 1e6); }

bool works(const PathFacts& path) { return path.reach == Reach::good; }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Tells whether the names differ only in case, or by one letter added, removed or replaced.
bool looks_like(const std::string& one, const std::string& other) {
  const std::string a = lower(one), b = lower(other);
  if (a == b) return true;
  const std::size_t longer = std::max(a.size(), b.size()), shorter = std::min(a.size(), b.size());
  if (longer - shorter > 1 || shorter < 2) return false;
  const auto [left, right] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin());
  const auto rest = [&](const std::string& text, std::size_t from) { return std::string_view(text).substr(std::min(from, text.size())); };
  const auto at = static_cast<std::size_t>(left - a.begin());
  if (a.size() == b.size()) return rest(a, at + 1) == rest(b, at + 1);
  return a.size() > b.size() ? rest(a, at + 1) == rest(b, at) : rest(a, at) == rest(b, at + 1);
}

class Diagnosis {
 public:
  explicit Diagnosis(const Facts& facts) : facts_(facts) {}

  std::vector<Finding> run() {
    look_at_interfaces();
    look_at_hearing();
    for (const PeerFacts& peer : facts_.peers) look_at(peer);
    look_at_names();
    look_at_groups();
    for (const MachineFacts& machine : facts_.machines) look_at(machine);
    for (const MatrixRow& row : facts_.matrix) look_at(row);
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    return std::move(findings_);
  }

 private:
  void add(Severity severity, const char* code, std::string subject, std::string text, std::string next) {
    findings_.push_back({severity, code, std::move(subject), std::move(text), std::move(next)});
  }

  std::string group_option() const { return facts_.group.empty() ? "--group NAME" : "--group " + facts_.group; }

  bool usable(const InterfaceFacts& interface) const { return is_used(facts_, interface) && !interface.addresses.empty(); }
  /// The loopback carries multicast, though the system does not say so.
  static bool carries_multicast(const InterfaceFacts& interface) { return interface.multicast || interface.loopback; }

  void look_at_interfaces() {
    const auto& all = facts_.interfaces;
    if (std::none_of(all.begin(), all.end(), [this](const auto& one) { return usable(one); })) {
      std::string inside, named;
      for (const auto& one : all) {
        if (one.leads_inside) inside += (inside.empty() ? "" : ", ") + one.name;
        if (one.named) named += (named.empty() ? "" : ", ") + one.name;
      }
      add(Severity::error, "no-interface", "",
          !named.empty() ? fmt::format("{}, which --interface names, has no address.", named)
          : inside.empty()
              ? "No network interface but the loopback is up with an address, so no other machine can be reached."
              : fmt::format("Only {} is up, which leads to virtual machines or containers of this machine and to no other.", inside),
          "connect the cable or the Wi-Fi; then `ip address` (macOS: `ifconfig`) shows an address");
    }
    for (const auto& one : all)
      if (usable(one) && !carries_multicast(one))
        add(Severity::warning, "multicast-off", one.name,
            fmt::format("Interface {} has multicast turned off, so machines behind it cannot be found by themselves.", one.name),
            fmt::format("sudo ip link set dev {} multicast on", one.name));
  }

  void look_at_hearing() {
    const bool has_interface = std::any_of(facts_.interfaces.begin(), facts_.interfaces.end(),
                                           [this](const auto& one) { return usable(one) && carries_multicast(one); });
    if (!has_interface) return;
    if (!facts_.heard_itself)
      return add(
          Severity::error, "deaf", "",
          fmt::format("Not even this machine's own multicast came back, on UDP port {}.", facts_.discovery_port),
          facts_.macos
              ? "System Settings > Privacy & Security > Local Network: allow the terminal that runs ringlet; or name machines with --peer"
              : fmt::format("let UDP port {0} pass, such as `sudo ufw allow {0}/udp`; or name machines with --peer HOST",
                            facts_.discovery_port));
    const bool answered = std::any_of(facts_.peers.begin(), facts_.peers.end(), [](const auto& one) { return one.answered; });
    if (facts_.machines.empty() && !answered && !failed_peer())
      add(Severity::warning, "nobody", "", "No other machine was heard.",
          fmt::format("on the other machines: `ringlet up {}`; where that runs already: `ringlet doctor --peer HOST` asks one by name",
                      group_option()));
  }

  /// Tells whether a named peer did not answer. Such a peer has a finding of its own, which explains it.
  bool failed_peer() const {
    return std::any_of(facts_.peers.begin(), facts_.peers.end(), [](const auto& one) { return !one.answered && one.knock; });
  }

  void look_at(const PeerFacts& peer) {
    if (peer.answered || !peer.knock) return;
    if (peer.unknown)
      return add(Severity::error, "unknown-host", peer.name, fmt::format("There is no host called {}.", peer.knock->to.host),
                 "check the name; or give the machine's address, which `ip address` shows there (macOS: `ifconfig`)");
    switch (peer.knock->reach) {
      case Reach::good:
      case Reach::refused:
        return add(
            Severity::error, "peer-does-not-answer", peer.name,
            fmt::format(
                "{} is there, but nothing answers at its UDP port {}: `ringlet up` does not run there, or a firewall holds UDP back.",
                peer.name, peer.knock->to.port),
            fmt::format("on {}: `ringlet up {}`; where it runs: `sudo ufw allow {}/udp`", peer.name, group_option(), peer.knock->to.port));
      default:
        break;
    }
    if (peer.neighbour)
      return add(
          Severity::error, "isolated", peer.name,
          fmt::format("{} has an address of this machine's own network, but does not answer there at all ({}). It is off, or the access "
                      "point keeps its clients apart (client or AP isolation, guest network).",
                      peer.name, peer.knock->text),
          "turn client isolation off at the access point, or use a cable; `ping` from both sides shows when it works");
    add(Severity::error, "unreachable", peer.name,
        fmt::format("{} cannot be reached ({}): it is off, has another address, or no route leads there.", peer.name, peer.knock->text),
        fmt::format("ip route get {}; and `ringlet doctor` on that machine, to see its addresses", peer.knock->to.host));
  }

  void look_at_names() {
    std::map<std::pair<std::string, std::string>, int> count;
    for (const MachineFacts& machine : facts_.machines) ++count[{machine.group, machine.name}];
    for (const auto& [key, machines] : count)
      if (machines > 1)
        add(Severity::warning, "duplicate-name", key.second,
            fmt::format("{} machines of group {} are called {}, so nobody can say which is meant.", machines, key.first, key.second),
            fmt::format("on one of them: `ringlet up --group {} --name OTHER_NAME`", key.first));
  }

  void look_at_groups() {
    if (!facts_.machines.empty() && !facts_.has_token)
      add(Severity::warning, "no-token", "", "This machine has no token, so it can neither join nor measure the others.",
          fmt::format("`ringlet pair {0}` where there is one, `ringlet pair {0} --join` here", group_option()));
    if (facts_.group.empty()) return;
    const bool anyone =
        std::any_of(facts_.machines.begin(), facts_.machines.end(), [&](const auto& one) { return one.group == facts_.group; });
    for (const MachineFacts& machine : facts_.machines)
      if (machine.group != facts_.group && looks_like(machine.group, facts_.group))
        add(anyone ? Severity::warning : Severity::error, "other-group", machine.name,
            fmt::format("{} is up in group {}, not in {}.", machine.name, machine.group, facts_.group),
            fmt::format("on {}: `ringlet up --group {}`", machine.name, facts_.group));
    if (anyone || facts_.machines.empty()) return;
    std::set<std::string> groups;
    for (const MachineFacts& machine : facts_.machines)
      if (!looks_like(machine.group, facts_.group)) groups.insert(machine.group);
    if (groups.empty()) return;
    add(Severity::warning, "nobody-in-group", "",
        fmt::format("Nobody is up in group {}; the machines that were heard are in {}.", facts_.group, fmt::join(groups, ", ")),
        fmt::format("on the other machines: `ringlet up --group {}`; or here: `ringlet doctor --group {}`", facts_.group, *groups.begin()));
  }

  void look_at(const MachineFacts& machine) {
    if (!facts_.group.empty() && machine.group != facts_.group) return;
    if (!machine.by_multicast)
      add(Severity::warning, "multicast-blocked", machine.name,
          fmt::format("{} answers when it is asked by name, but its multicast does not come through: the network blocks it.", machine.name),
          fmt::format("name it everywhere, such as `ringlet up {} --peer {}`", group_option(),
                      machine.paths.empty() ? machine.name : machine.paths.front().to.host));
    if (machine.version != facts_.version)
      add(Severity::error, "version-differs", machine.name,
          fmt::format("{} has Ringlet {}, this machine {}.", machine.name, machine.version, facts_.version),
          "install the same version on both; `ringlet version` shows it");
    look_at_clock(machine);
    if (machine.port == 0)
      return add(Severity::note, "no-agent", machine.name,
                 fmt::format("{} is up without a token: it shows itself, but takes no connections, and cannot be measured.", machine.name),
                 fmt::format("`ringlet pair {0}` where there is a token, `ringlet pair {0} --join` on {1}; then `ringlet up` anew there",
                             group_option(), machine.name));
    look_at_paths(machine);
  }

  void look_at_clock(const MachineFacts& machine) {
    if (!machine.clock_ahead) return;
    const Duration off{std::abs(machine.clock_ahead->nanoseconds)};
    if (off < kClockTolerance) return;
    add(Severity::warning, "clock", machine.name,
        fmt::format("The clock of {} is {:.0f} s {}: times in logs and checkpoints will not fit together.", machine.name,
                    static_cast<double>(off.nanoseconds) / 1e9, *machine.clock_ahead < Duration{} ? "behind" : "ahead"),
        fmt::format("on {}: `sudo timedatectl set-ntp true`", machine.name));
  }

  void look_at_paths(const MachineFacts& machine) {
    if (!facts_.has_token) return;
    const auto good = std::count_if(machine.paths.begin(), machine.paths.end(), works);
    // A cause that concerns the whole machine shows on each of its paths, but is reported once.
    std::vector<Reach> told;
    for (const PathFacts& path : machine.paths) {
      if (works(path)) {
        look_at_speed(machine, path, good > 1);
        continue;
      }
      if (std::find(told.begin(), told.end(), path.reach) != told.end()) continue;
      told.push_back(path.reach);
      tell_failure(machine, path, good > 0);
    }
  }

  void tell_failure(const MachineFacts& machine, const PathFacts& path, bool others_work) {
    const std::string where = to_string(path.to);
    const std::string& name = machine.name;
    const Severity severity = others_work ? Severity::warning : Severity::error;
    switch (path.reach) {
      case Reach::token_differs:
        return add(Severity::error, "token-differs", name, fmt::format("{} has another token than this machine.", name),
                   fmt::format("`ringlet pair {0}` where it is right, `ringlet pair {0} --join --replace` on the other, and both anew",
                               group_option()));
      case Reach::not_trusted:
        return add(Severity::error, "not-trusted", name, fmt::format("This machine and {} do not trust each other: {}.", name, path.text),
                   fmt::format("`ringlet machines {}` on both, and compare the keys", group_option()));
      case Reach::incompatible:
        return add(Severity::error, "incompatible", name, fmt::format("{} does not work together with this machine: {}.", name, path.text),
                   "start both with the same version and the same settings");
      case Reach::refused:
        return add(
            severity, "port-closed", name,
            fmt::format("{} says that nobody listens at {}, though its beacon names that port: its agent listens at another address, or a "
                        "firewall answers for it.",
                        name, where),
            fmt::format("on {}: `ringlet up {} --listen 0.0.0.0:{}`", name, group_option(), path.to.port));
      case Reach::stalled:
        return add(
            Severity::error, "mtu", name,
            fmt::format("Small messages to {} pass, large ones do not: packets of full size are lost on the way{}.", where, mtu_of(path)),
            fmt::format("sudo ip link set dev {} mtu 1400   (on both machines; lower it until this is gone)",
                        path.interface.empty() ? "INTERFACE" : path.interface));
      case Reach::unreachable:
        return add(severity, "no-route", name, fmt::format("{} was heard, but {} cannot be reached ({}).", name, where, path.text),
                   fmt::format("ip route get {}", path.to.host));
      case Reach::broken:
        return add(
            severity, "breaks-off", name,
            fmt::format("{} takes connections at {}, but breaks them off ({}): what listens there is no agent, or one that failed.", name,
                        where, path.text),
            fmt::format("on {}: `ss -ltnp sport = {}` shows what it is; then `ringlet up {}` anew", name, path.to.port, group_option()));
      default:
        return add(severity, "firewall", name,
                   fmt::format("{} was heard, but does not take connections at {} ({}): a firewall there, or between, holds them back.",
                               name, where, path.text),
                   open_ports_of(name));
    }
  }

  /// The ways between the machines: those from this one are looked at with the machines, except for the ranks' ports.
  void look_at(const MatrixRow& row) {
    for (const MatrixRow::Cell& cell : row.cells) {
      // A machine that has not heard of another can be a rank beside it: whoever runs the job tells it where the other is.
      if (cell.failure == agent::kNotHeard) continue;
      if (!cell.failure.empty())
        add(Severity::error, "way-blocked", cell.to,
            fmt::format("{} does not reach {} ({}), so the two cannot be ranks of one group.", row.from, cell.to, cell.failure),
            open_ports_of(cell.to));
      else if (!cell.rank_port.failure.empty())
        add(Severity::error, "rank-ports", cell.to,
            fmt::format("{} reaches {}, but not its ranks' port {} ({}): a firewall there, or between, holds them back.", row.from, cell.to,
                        cell.rank_port.port, cell.rank_port.failure),
            open_ports_of(cell.to));
    }
  }

  /// What to type on that machine so that its firewall lets others in.
  std::string open_ports_of(const std::string& machine) const {
    const auto port = facts_.discovery_port;
    const auto last = agent::kRankPorts.last;
    const std::string ufw = fmt::format("`sudo ufw allow {}/udp && sudo ufw allow {}:{}/tcp`", port, agent::kAgentPort, last);
    const std::string firewalld =
        fmt::format("`sudo firewall-cmd --permanent --add-port={}/udp --add-port={}-{}/tcp && sudo firewall-cmd --reload`", port,
                    agent::kAgentPort, last);
    const std::string nft = fmt::format(
        "`sudo nft insert rule inet filter input udp dport {} accept && sudo nft insert rule inet filter input tcp dport {}-{} accept`",
        port, agent::kAgentPort, last);
    const std::string macos = "System Settings > Network > Firewall: allow `ringlet` and the program";
    if (machine != facts_.name)
      return fmt::format("on {}, as its firewall is: {}, or {}, or {}; on macOS {}", machine, ufw, firewalld, nft, macos);
    if (facts_.macos) return macos;
    return facts_.firewall_tool == "ufw" ? ufw : facts_.firewall_tool == "firewall-cmd" ? firewalld : nft;
  }

  std::string mtu_of(const PathFacts& path) const {
    for (const InterfaceFacts& interface : facts_.interfaces)
      if (interface.name == path.interface && interface.mtu != 0)
        return fmt::format(" ({} has an MTU of {})", interface.name, interface.mtu);
    return {};
  }

  void look_at_speed(const MachineFacts& machine, const PathFacts& path, bool others_work) {
    const bool narrow = path.bytes_per_second > 0 && path.bytes_per_second < kSlowBytesPerSecond;
    const bool far = path.round_trip && *path.round_trip > kSlowRoundTrip;
    if (!narrow && !far) return;
    const std::string way = path.interface.empty() ? "" : " by " + path.interface;
    const std::string measured = fmt::format("{}{}{}", narrow ? megabits(path.bytes_per_second) : "", narrow && far ? " and " : "",
                                             far ? milliseconds(*path.round_trip) + " there and back" : "");
    if (others_work)
      return add(Severity::note, "slow-path", machine.name,
                 fmt::format("The way to {}{} ({}) is slow: {}. Ranks take the fastest way that works.", machine.name, way,
                             to_string(path.to), measured),
                 "nothing, unless the other way is to be used less");
    add(Severity::warning, "slow-link", machine.name,
        fmt::format("The link to {}{} is slow: {}. Every step of a group waits for its slowest link.", machine.name, way, measured),
        "use a cable instead of Wi-Fi, or the 5 GHz band; `ringlet bench` shows what a group reaches");
  }

  const Facts& facts_;
  std::vector<Finding> findings_;
};

}  // namespace

bool is_used(const Facts& facts, const InterfaceFacts& interface) {
  const bool any_named = std::any_of(facts.interfaces.begin(), facts.interfaces.end(), [](const auto& one) { return one.named; });
  return any_named ? interface.named : !interface.loopback && !interface.leads_inside;
}

std::string_view name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    default:
      return "note";
  }
}

std::vector<Finding> diagnose(const Facts& facts) { return Diagnosis(facts).run(); }

}  // namespace ringlet::doctor
