#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ringlet/error.hpp>

#include "tools/command/discovery_line.hpp"
#include "tools/command/doctor_report.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/stop_signals.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/launch/standard_error.hpp"
#include "tools/machines/known_machines.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kDoctorFooter[] = R"(Example:
  ringlet doctor --group home
  ringlet doctor --group home --peer 192.168.1.7

Looks at this machine's interfaces, listens for others, asks those who were named, and tries every way to the machines that are up in the group:
whether it opens, whether token and version fit, round trip and bandwidth. Tells what is wrong, and the command to run next. Run it on the machine
that sees the trouble while `ringlet up` runs on the others.
Findings (in --json as "code"): no-interface, multicast-off, deaf, nobody, nobody-in-group, peer-does-not-answer, unknown-host, isolated,
unreachable, duplicate-name, other-group, multicast-blocked, version-differs, clock, no-agent, no-token, token-differs, not-trusted, incompatible, port-closed,
firewall, breaks-off, no-route, mtu, slow-link, slow-path, way-blocked, rank-ports.
Exit codes: 0 all well, or notes only; 3 warnings; 4 errors; 1 it could not look; 2 a mistake on the command line; 130 interrupted.)";

constexpr int kCouldNotLook = 1, kInterrupted = 130;

int exit_code(const std::vector<doctor::Finding>& findings) {
  int code = 0;
  for (const doctor::Finding& finding : findings)
    code = std::max(code, finding.severity == doctor::Severity::error ? 4 : finding.severity == doctor::Severity::warning ? 3 : 0);
  return code;
}

}  // namespace

int run_doctor(Arguments arguments) {
  DiscoveryLine line;
  doctor::ExaminationOptions options;
  double listening_seconds = 2;
  bool no_matrix = false;
  CLI::App app("Explains why machines do not find or reach each other, and measures the ways between them.", "ringlet doctor");
  app.footer(kDoctorFooter);
  const CLI::Option* group_option =
      app.add_option("--group", options.group, "The group whose machines to look at; all groups if not said")->type_name("NAME");
  options.name = announced_name();
  app.add_option("--name", options.name, "What to call this machine")->capture_default_str()->type_name("NAME");
  app.add_option("--wait", listening_seconds, "How many seconds to listen")->capture_default_str();
  app.add_flag("--no-matrix", no_matrix, "Do not ask the machines to measure their ways to each other");
  declare_discovery_options(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;

  std::optional<std::string> mistake = convert_discovery_line(line, options.datagrams);
  if (!mistake) mistake = convert_seconds("--wait", listening_seconds, options.listening);
  if (!mistake && group_option->count() > 0) mistake = find_group_mistake(options.group);
  if (!mistake) mistake = find_name_mistake("--name", options.name);
  if (mistake) return usage_error("doctor", *mistake);
  options.token = options.group.empty() ? native::read_token({}, native::process_variable)
                                        : tokens::find_token(options.group, native::process_variable);
  if (!options.token.empty()) {
    const auto key = machines::MachineKey::load(native::process_variable);
    options.identity.emplace(key, options.name, RINGLET_VERSION);
    options.find_doubt = [own = key.public_key()](const std::string& group, const std::string& name, const machines::PublicKey& asked) {
      // The group's name comes from a beacon, and this runs inside a callback of the loop.
      try {
        return machines::KnownMachines(group, own, native::process_variable).judge_answering(name, asked).refusal;
      } catch (const Error& error) {
        return std::string(error.what());
      }
    };
  }
  options.peers = line.peers;
  options.version = RINGLET_VERSION;
  options.seed = random_number();
  options.matrix = !no_matrix;
  options.on_progress = [](const std::string& what) { launch::print_error("ringlet doctor: {} ...\n", what); };

  UvLoop loop;
  const StopSignals signals(loop);
  options.stopped = [&signals] { return signals.came(); };
  const Result<doctor::Facts> examined = doctor::Examination(loop, std::move(options)).run();
  if (signals.came()) {
    launch::print_error("ringlet doctor: interrupted; nothing was found out\n");
    return kInterrupted;
  }
  if (!examined.ok()) {
    launch::print_error("ringlet doctor: {}; choose another port with --port\n", examined.status().text());
    return kCouldNotLook;
  }
  const doctor::Facts& facts = examined.value();
  const std::vector<doctor::Finding> findings = doctor::diagnose(facts);
  if (line.json)
    print_json(doctor_json(facts, findings));
  else
    print_out(doctor_report(facts, findings, wants_colours()));
  return exit_code(findings);
}

}  // namespace ringlet::command
