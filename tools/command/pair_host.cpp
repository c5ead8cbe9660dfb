#include <fmt/format.h>
#include <openssl/crypto.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/command/pair_line.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/stop_signals.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/discovery/discovery.hpp"
#include "tools/launch/standard_error.hpp"
#include "tools/pairing/pairing_desk.hpp"
#include "tools/pairing/pairing_door.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

using pairing::PairingDesk;
using State = PairingDesk::State;

pairing::Secret take_token(const PairLine& line) {
  std::string token = tokens::find_token(line.group, native::process_variable);
  pairing::Secret secret(token);
  OPENSSL_cleanse(token.data(), token.size());
  return secret;
}

pairing::DeskOptions desk_options(const PairLine& line) {
  pairing::DeskOptions options;
  options.group = line.group;
  options.name = line.name;
  options.machine_key = paired_self(line).key;
  options.digits = line.digits;
  options.validity = line.validity;
  return options;
}

/// Prints changes of the desk's state.
class Screen {
 public:
  Screen(const PairLine& line, const PairingDesk& desk, const pairing::PairingDoor& door) : line_(line), desk_(desk), door_(door) {}

  void follow() {
    if (desk_.wrong_codes() != wrong_) tell_wrong();
    if (desk_.state() == State::shows_code && desk_.codes() != codes_) tell_code();
  }
  /// Prints the result and returns the exit code.
  int tell_end() {
    follow();
    if (desk_.state() == State::paired) {
      trust_paired(line_, desk_.newcomer());
      if (line_.discovery.json)
        print_json({{"event", "paired"}, {"name", desk_.newcomer().name}, {"group", line_.group}});
      else
        print_line(fmt::format("{} has the token of group {} now", desk_.newcomer().name, line_.group));
      return 0;
    }
    if (desk_.state() == State::gave_up)
      return fail_pairing(kCodeRefused, "too many wrong codes; is someone guessing? Run it again to try once more");
    if (desk_.state() == State::unconfirmed)
      return fail_pairing(kFailed,
                          fmt::format("{} got the token, but did not say that it saved it; look there, and pair again if it did not",
                                      desk_.newcomer().name));
    return fail_pairing(kNobodyCame,
                        fmt::format("nobody came within {} s; run it again when the other machine is ready", line_.valid_seconds));
  }
  int tell_stop(int exit_code) { return fail_pairing(exit_code, "stopped; the code is void"); }

 private:
  void tell_wrong() {
    wrong_ = desk_.wrong_codes();
    const double pause = static_cast<double>(desk_.pause().whole_milliseconds()) / 1'000;
    if (line_.discovery.json)
      print_json({{"event", "wrong_code"}, {"wrong_codes", wrong_}});
    else
      print_line(fmt::format("someone tried a wrong code, so that code is void{}",
                             desk_.over() ? "" : fmt::format("; another follows in {} s", pause)));
  }

  void tell_code() {
    codes_ = desk_.codes();
    if (line_.discovery.json) {
      auto addresses = nlohmann::ordered_json::array();
      for (const Address& address : door_.addresses()) addresses.push_back(to_string(address));
      return print_json({{"event", "code"},
                         {"code", desk_.code().view()},
                         {"group", line_.group},
                         {"name", line_.name},
                         {"valid_seconds", line_.valid_seconds},
                         {"addresses", addresses}});
    }
    print_line(fmt::format("\n  {}\n", spaced_code(desk_.code())));
    const std::string port = line_.discovery.port == kDiscoveryPort ? "" : fmt::format(" --port {}", line_.discovery.port);
    print_line(fmt::format("Type this code on the new machine, at: ringlet pair --group '{}' --join{}\n{} pairs for {} s at {}",
                           line_.group, port, line_.name, line_.valid_seconds, to_string(door_.addresses().front())));
  }

  const PairLine& line_;
  const PairingDesk& desk_;
  const pairing::PairingDoor& door_;
  int codes_ = 0;
  int wrong_ = 0;
};

discovery::Profile profile_of(const PairLine& line, std::uint16_t port) {
  discovery::Profile profile;
  profile.name = line.name;
  profile.version = RINGLET_VERSION;
  profile.group = line.group;
  profile.pairing_port = port;
  return profile;
}

}  // namespace

int run_pair_host(const PairLine& line) {
  auto token = take_token(line);
  if (token.empty())
    throw std::runtime_error(
        fmt::format("there is no token for group {0} here to hand on; make one with `ringlet token --save --group {0}`, or, if another "
                    "machine has it, run this there and `ringlet pair --group {0} --join` here",
                    line.group));
  if (token.view().size() > pairing::kMaxTokenBytes)
    throw std::runtime_error(
        fmt::format("the token has {} characters; pairing hands on at most {}", token.view().size(), pairing::kMaxTokenBytes));
  UvLoop loop;
  const StopSignals signals(loop);
  UvDatagrams datagrams(loop, line.datagrams);
  PairingDesk desk(desk_options(line), std::move(token), pairing::fill_random, loop.now());
  pairing::PairingDoor door(loop, desk);
  discovery::Discovery discovery(loop, datagrams, {.seed = random_number(), .profile = profile_of(line, 0), .devices = {}, .limits = {}},
                                 [](discovery::Change, const discovery::Machine&) {});
  discovery.start();
  if (const Status status = door.open(datagrams.interfaces()); !status.ok()) throw std::runtime_error(status.text());
  // The first beacon leaves only when the loop runs, so it will already have this port.
  discovery.announce(profile_of(line, door.addresses().front().port));
  if (const Status status = datagrams.status(); !status.ok())
    launch::print_error("ringlet pair: {}; the other machine has to name this one: --peer {}\n", status.text(),
                        to_string(door.addresses().front()));

  Screen screen(line, desk, door);
  while (!desk.over() && !signals.came() && !is_output_lost()) {
    screen.follow();
    loop.wait();
  }
  const int code = desk.over() ? screen.tell_end() : screen.tell_stop(signals.exit_code());
  discovery.leave();
  // The connections stay open until refused newcomers have received the refusal.
  while (!door.quiet() && !signals.came()) loop.wait();
  return code;
}

}  // namespace ringlet::command
