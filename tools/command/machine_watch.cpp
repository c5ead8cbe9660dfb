#include "tools/command/machine_watch.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/agent/machine_search.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/stop_signals.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/command/table.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

constexpr Duration kBetweenDraws = Duration::seconds(1);
// The delay lets many changes be drawn together.
constexpr Duration kGather = Duration::milliseconds(50);

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {24, 80, 0, 0};
  return size;
}

/// Without it the first line that nobody reads would kill an agent, and with it all jobs that it holds.
class IgnoredPipeSignal {
 public:
  explicit IgnoredPipeSignal(bool has_agent) : before_(has_agent ? ::signal(SIGPIPE, SIG_IGN) : SIG_ERR) {}
  ~IgnoredPipeSignal() {
    if (before_ != SIG_ERR) ::signal(SIGPIPE, before_);
  }
  IgnoredPipeSignal(const IgnoredPipeSignal&) = delete;
  IgnoredPipeSignal& operator=(const IgnoredPipeSignal&) = delete;

 private:
  void (*before_)(int);
};

discovery::DiscoveryOptions discovery_options(const WatchOptions& options, std::uint16_t agent_port) {
  std::optional<discovery::Profile> profile = options.profile;
  if (profile) profile->port = agent_port;
  return {.seed = random_number(), .profile = profile, .devices = machine_devices, .limits = {}};
}

}  // namespace

MachineWatch::MachineWatch(WatchOptions options)
    : options_(std::move(options)),
      datagrams_(loop_, options_.datagrams),
      agent_(make_agent()),
      agent_status_(agent_ ? agent_->open() : Status{}),
      discovery_(loop_, datagrams_, discovery_options(options_, agent_ ? agent_->port() : std::uint16_t{0}),
                 [this](discovery::Change change, const discovery::Machine& machine) { on_change(change, machine); }),
      terminal_(!options_.json && !options_.once && ::isatty(STDOUT_FILENO) == 1),
      colours_(wants_colours()) {}

MachineWatch::~MachineWatch() = default;

std::unique_ptr<agent::Agent> MachineWatch::make_agent() {
  if (!options_.agent) return nullptr;
  agent::AgentOptions options = *options_.agent;
  options.find_machine = [this](std::uint64_t instance) {
    const auto& machines = discovery_.directory().machines();
    const auto found = machines.find(instance);
    const bool has_agent = found != machines.end() && found->second.profile.port != 0;
    return has_agent ? agent::addresses_of(found->second, found->second.profile.port) : std::vector<Address>();
  };
  return std::make_unique<agent::Agent>(loop_, std::move(options), [this](const agent::AgentEvent& event) { on_agent_event(event); });
}

int MachineWatch::run() {
  const StopSignals signals(loop_);
  if (!agent_status_.ok()) throw std::runtime_error(agent_status_.text());
  discovery_.start();
  if (const Status status = datagrams_.status(); !status.ok())
    throw std::runtime_error(status.text() + "; choose another port with --port");
  tell_start();
  const IgnoredPipeSignal ignored(agent_ != nullptr);
  auto advert = make_advert();
  bool over = false;
  if (options_.once) loop_.after(*options_.once, [&over] { over = true; });
  if (terminal_) draw();
  const auto is_over = [&] { return over || signals.came(); };
  while (!is_over() && !is_output_lost()) loop_.wait();
  if (is_output_lost()) finish_jobs(is_over);
  const int code = options_.once ? print_all() : 0;
  discovery_.leave();
  advert.reset();
  close_agent();
  return code;
}

/// Waits, where the lines cannot be written any more, until no job runs or until `is_over`: the jobs do not need the lines. New ones, which
/// its owner would not see, are refused.
void MachineWatch::finish_jobs(const std::function<bool()>& is_over) {
  if (!agent_ || agent_->idle() || is_over()) return;
  launch::print_error("{}: its lines cannot be written any more; it takes no new jobs, and ends when none runs here\n",
                      options_.message_prefix);
  agent_->refuse_jobs("its owner cannot see its lines any more, and it ends with its jobs");
  while (!is_over() && !agent_->idle()) loop_.wait();
}

/// Only a machine with an agent is advertised, because a DNS-SD service needs a port.
std::unique_ptr<ServiceAdvert> MachineWatch::make_advert() {
  if (!options_.dns_sd || !agent_) return nullptr;
  const auto& profile = *options_.profile;
  Service service{profile.name, agent_->port(), {{"group", profile.group}, {"version", profile.version}}};
  return std::make_unique<ServiceAdvert>(std::move(service), [message_prefix = options_.message_prefix](const std::string& name) {
    launch::print_error("{}: DNS-SD browsers see it as {}, type _ringlet._tcp\n", message_prefix, name);
  });
}

/// Waits until no job runs. A second signal ends this process, and the jobs with it, at once.
void MachineWatch::close_agent() {
  if (!agent_) return;
  agent_->close();
  while (!agent_->idle()) loop_.wait();
}

void MachineWatch::on_agent_event(const agent::AgentEvent& event) {
  jobs_.take(event);
  if (terminal_)
    draw_soon(kGather);
  else
    options_.json ? print_json(event_json(event)) : print_line(event_line(event));
}

void MachineWatch::tell_start() const {
  if (!options_.profile) return;
  const auto& profile = *options_.profile;
  launch::print_error("{}: {} is up in group {}, until Ctrl-C\n", options_.message_prefix, profile.name, profile.group);
  if (options_.agent)
    launch::print_error("{}: starts programs that {} allows, at TCP port {}\n", options_.message_prefix,
                        options_.agent->allowed.file().empty() ? "--allow" : "--allow or " + options_.agent->allowed.file(),
                        agent_->port());
  else
    launch::print_error(
        "{}: without a token this machine is only shown; give it the group's (`ringlet pair --group {} --join`, or "
        "RINGLET_TOKEN_FILE) to let `ringlet run` start programs here\n",
        options_.message_prefix, profile.group);
  if (options_.json)
    print_json({{"event", "up"},
                {"name", profile.name},
                {"group", profile.group},
                {"instance", fmt::format("{:016x}", discovery_.instance())},
                {"port", agent_ ? agent_->port() : 0}});
}

bool MachineWatch::shows(const discovery::Machine& machine) const {
  // A machine that is only pairing for a group is not up in it.
  return !options_.group || (machine.profile.group == *options_.group && machine.profile.pairing_port == 0);
}

Machines MachineWatch::machines() const {
  return discovery_.directory().find([this](const discovery::Machine& machine) { return shows(machine); });
}

void MachineWatch::on_change(discovery::Change change, const discovery::Machine& machine) {
  if (options_.once || !shows(machine)) return;
  if (terminal_)
    draw_soon(kGather);
  else
    options_.json ? print_json(event_json(change, machine)) : print_line(event_line(change, machine));
}

void MachineWatch::draw_soon(Duration delay) {
  const Instant at = loop_.now() + delay;
  if (draw_timer_ != 0 && next_draw_ <= at) return;
  loop_.cancel(draw_timer_);
  next_draw_ = at;
  draw_timer_ = loop_.after(delay, [this] { draw(); });
}

void MachineWatch::draw() {
  draw_timer_ = 0;
  const winsize size = terminal_size();
  const Machines shown = machines();
  std::vector<std::string> lines = machine_table(shown, size.ws_col, colours_);
  std::vector<std::string> jobs = jobs_.lines();
  // Lines above the terminal's top edge cannot be redrawn, so the table must fit.
  const std::size_t rows = size.ws_row > 4 ? size.ws_row - 2U : 2U;
  if (jobs.size() > rows / 2) jobs.erase(jobs.begin(), jobs.end() - static_cast<std::ptrdiff_t>(rows / 2));
  if (const std::size_t most = rows - jobs.size(); lines.size() > most) {
    const std::size_t hidden = lines.size() - most + 1;
    lines.resize(most - 1);
    lines.push_back(fmt::format("and {} more", hidden));
  }
  if (shown.empty()) lines.back() = cut(fmt::format("nobody yet; listening on {}", agent::names_of(datagrams_.interfaces())), size.ws_col);
  for (const std::string& job : jobs) lines.push_back(cut(job, size.ws_col));
  std::string text = drawn_lines_ == 0 ? std::string() : fmt::format("\x1b[{}A\r\x1b[J", drawn_lines_);
  for (const std::string& line : lines) text += line + "\n";
  drawn_lines_ = lines.size();
  print_out(text);
  draw_soon(kBetweenDraws);
}

int MachineWatch::print_all() const {
  const Machines shown = machines();
  if (options_.json) {
    auto list = nlohmann::ordered_json::array();
    for (const discovery::Machine* machine : shown) list.push_back(to_json(*machine));
    print_json({{"machines", list}, {"interfaces", to_json(datagrams_.interfaces())}});
  } else if (!shown.empty()) {
    for (const std::string& line : machine_table(shown, 0, colours_)) print_line(line);
  }
  if (!shown.empty()) return 0;
  explain_nobody();
  return kNobodyFound;
}

void MachineWatch::explain_nobody() const {
  const double seconds = static_cast<double>(options_.once->whole_milliseconds()) / 1000;
  const std::string others = options_.group ? describe_other_groups(discovery_.directory(), *options_.group) : "";
  const std::string what = options_.group ? "no machine of group " + *options_.group : std::string("no machine");
  const bool deaf = !discovery_.heard_itself() && !datagrams_.interfaces().empty();
  launch::print_error(
      "{}: {} was heard within {} s on {}, UDP port {}{}; {}\n", options_.message_prefix, what, seconds,
      agent::names_of(datagrams_.interfaces()), options_.datagrams.port, datagrams_.describe_unknown(),
      !others.empty() ? "heard in other groups: " + others
      : deaf ? "not even this machine's own multicast came back: a firewall, or a missing permission for the local network, may hold it "
               "back; name a machine with --peer HOST"
             : "is `ringlet up` running there? Where the network blocks multicast, name a machine with --peer HOST");
}

}  // namespace ringlet::command
