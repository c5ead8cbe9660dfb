#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/command/launch_line.hpp"
#include "tools/command/pair_line.hpp"
#include "tools/command/qr_code.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/launch/standard_error.hpp"
#include "tools/machines/known_machines.hpp"
#include "tools/tokens/group_token.hpp"
#include "tools/tokens/saved_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kPairFooter[] = R"(Example:
  ringlet pair --group home            on a machine that has the group's token: shows a code
  ringlet pair --group home --join     on the new machine: asks for the code, and saves the token

The code is for one try: a wrong one is void, and after a pause there is another; after three wrong ones it is over. Nobody who listens on the
network or answers in the other machine's place can try codes at leisure. Both machines also learn each other's key (`ringlet machines`). Where
multicast is blocked, name the machine that shows the code: --peer HOST, or --peer HOST:PORT as it stands beside the code. --join reads the code
from stdin where that is no terminal.
Without pairing, `ringlet token --show` on one machine and `ringlet token --save --stdin` on the other do the same by hand.
Exit codes: 0 paired; 1 it failed; 2 a mistake on the command line; 3 nobody was found, or nobody came in time; 4 the code was wrong;
128 + signal after SIGINT (Ctrl-C), SIGTERM or SIGHUP.)";

void declare(CLI::App& app, PairLine& line) {
  app.footer(kPairFooter);
  app.add_option("--group", line.group, "The group's name")->capture_default_str()->type_name("NAME");
  app.add_option("--name", line.name, "What to call this machine")->capture_default_str()->type_name("NAME");
  auto* join = app.add_flag("--join", line.join, "Get the token from a machine that shows a code");
  app.add_option("--digits", line.digits, "How many digits the code has, 6 to 8")->capture_default_str()->excludes(join);
  app.add_option("--valid", line.valid_seconds, "For how many seconds a code is valid")->capture_default_str()->excludes(join);
  app.add_flag("--qr", line.qr, "Show the token itself as a QR code, without pairing")->excludes(join);
  app.add_option("--code-file", line.code_file, "Read the code from this file; -: stdin")->needs(join)->type_name("FILE");
  app.add_option("--wait", line.wait_seconds, "For how many seconds to look for the other machine")->capture_default_str()->needs(join);
  app.add_flag("--replace", line.replace, "Save the token although one is saved for the group already")->needs(join);
  declare_discovery_options(app, line.discovery);
}

/// A peer given with a port is dialled at it. A peer without a port is asked for its port first.
std::optional<std::string> convert_peers(PairLine& line) {
  auto& peers = line.discovery.peers;
  if (peers.size() == 1 && line.join) {
    const auto address = parse_address(peers.front());
    if (address.ok() && address.value().port != 0) {
      line.direct = address.value();
      peers.clear();
    }
  }
  // A newcomer leaves to those that are up the datagrams that are sent to this machine alone.
  line.datagrams.hears_shared_port = !line.join;
  return convert_discovery_line(line.discovery, line.datagrams);
}

std::optional<std::string> convert(PairLine& line) {
  constexpr double kLeastSeconds = 1, kMaxSeconds = 3'600;
  if (auto mistake = find_group_mistake(line.group)) return mistake;
  if (auto mistake = find_name_mistake("--name", line.name)) return mistake;
  if (line.digits < 6 || line.digits > 8) return fmt::format("--digits {}: give 6, 7 or 8", line.digits);
  if (!(line.valid_seconds >= kLeastSeconds && line.valid_seconds <= kMaxSeconds))
    return fmt::format("--valid {}: give {} to {} seconds", line.valid_seconds, kLeastSeconds, kMaxSeconds);
  if (line.qr && line.discovery.json) return "--qr with --json: `ringlet token --show --json` prints the token for programs";
  if (auto mistake = convert_seconds("--wait", line.wait_seconds, line.wait)) return mistake;
  line.validity = Duration::milliseconds(static_cast<std::int64_t>(line.valid_seconds * 1'000));
  return convert_peers(line);
}

}  // namespace

pairing::PairedMachine paired_self(const PairLine& line) {
  const machines::PublicKey key = machines::MachineKey::load(native::process_variable).public_key();
  return {line.name, std::string(reinterpret_cast<const char*>(key.data()), key.size())};
}

void trust_paired(const PairLine& line, const pairing::PairedMachine& other) {
  machines::PublicKey key{};
  std::memcpy(key.data(), other.key.data(), std::min(key.size(), other.key.size()));
  const machines::PublicKey own = machines::MachineKey::load(native::process_variable).public_key();
  machines::KnownMachines(line.group, own, native::process_variable).trust_paired(other.name, key);
}

int fail_pairing(int code, const std::string& text) {
  launch::print_error("ringlet pair: {}\n", text);
  return code;
}

int run_pair_qr(const PairLine& line) {
  const std::string token = tokens::find_token(line.group, native::process_variable);
  if (token.empty())
    throw std::runtime_error(
        fmt::format("there is no token for group {0} here; make one with `ringlet token --save --group {0}`", line.group));
  launch::print_error("ringlet pair: this is the token of group {} itself: whoever sees it, or a picture of it, may join for good\n",
                      line.group);
  print_out(qr_code(token, ::isatty(STDOUT_FILENO) == 1));
  return 0;
}

int run_pair(Arguments arguments) {
  PairLine line;
  line.name = announced_name();
  CLI::App app("Brings a group's token to another machine by a short code that one person reads and types.", "ringlet pair");
  declare(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;
  if (const auto mistake = convert(line)) return usage_error("pair", *mistake);
  if (line.qr) return run_pair_qr(line);
  return line.join ? run_pair_newcomer(line) : run_pair_host(line);
}

}  // namespace ringlet::command
