#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/process/network_of_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

bool can_run() {
  if (const auto reason = NetworkOfHosts::enter()) {
    std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
    return false;
  }
  if (std::system("command -v avahi-daemon avahi-browse dbus-daemon >/dev/null") == 0) return true;
  std::printf("skipped: no Avahi on this system\n");
  return false;
}

/// Avahi on a host, in a namespace of processes and mounts that ends with it.
class Avahi {
 public:
  explicit Avahi(const NetworkHost& host) : host_(host) {
    host_.command("unshare --mount --pid --fork --kill-child --mount-proc sh " RINGLET_AVAHI_SCRIPT " " + directory_.path() + " " +
                  host_.name() + " >" + directory_.path() + "/log 2>&1 & echo $! >" + directory_.path() + "/process");
    script("until avahi-browse --terminate _nobody._tcp; do sleep 0.1; done");
  }
  // While unshare waits for what it has started, it heeds no other signal.
  ~Avahi() { ::kill(static_cast<pid_t>(std::stol(read_file(directory_.path() + "/process"))), SIGKILL); }
  Avahi(const Avahi&) = delete;
  Avahi& operator=(const Avahi&) = delete;

  std::string bus() const { return "unix:path=" + directory_.path() + "/bus"; }
  /// Returns the services of our type that Avahi knows, once `condition`, a command that reads them, succeeds.
  std::string browse(const std::string& condition) const {
    const std::string found = directory_.path() + "/found";
    script("until avahi-browse --resolve --parsable --terminate _ringlet._tcp >" + found + " && " + condition + " <" + found +
           "; do sleep 0.1; done");
    return read_file(found);
  }

 private:
  void script(const std::string& text) const {
    host_.command("env DBUS_SYSTEM_BUS_ADDRESS=" + bus() + " timeout 60 sh -c '" + text + "' >>" + directory_.path() + "/log 2>&1");
  }

  const NetworkHost& host_;
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a machine that is up is seen by browsers of services, until it ends") {
  if (!can_run()) return;
  NetworkOfHosts network(2);
  const Avahi here(network.host(0)), there(network.host(1));
  const auto up = network.host(0).run({"up", "--group", "home", "--name", "attic"},
                                      {{"RINGLET_TOKEN", "a-token-that-only-the-tests-have"}, {"DBUS_SYSTEM_BUS_ADDRESS", here.bus()}});
  up->wait_for_stderr("DNS-SD browsers see it as attic, type _ringlet._tcp");
  const std::string seen = there.browse("grep -q ^=.*10.77.0.1");
  CAPTURE(seen);
  CHECK_THAT(seen, Contains("attic;_ringlet._tcp;local;host1.local;10.77.0.1;"));
  CHECK_THAT(seen, Contains("\"group=home\"") && Contains("\"version=") && !Contains("token"));
  up->send(SIGTERM);
  CHECK(up->finish().exit_code == 0);
  CHECK(there.browse("! grep -q attic").empty());
}

TEST_CASE("without a responder, or a token, a machine is up all the same") {
  if (!can_run()) return;
  NetworkOfHosts network(1);
  const auto up = network.host(0).run({"up", "--group", "home"}, {{"RINGLET_TOKEN", "a-token-that-only-the-tests-have"},
                                                                  {"DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere"}});
  up->wait_for_stderr("at TCP port ");
  up->send(SIGTERM);
  const Outcome outcome = up->finish();
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, !Contains("DNS-SD"));
}
