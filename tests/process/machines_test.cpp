#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/process/pairing_machine.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

const std::string kProgram = RINGLET_RANK_PROGRAM;

/// A machine with a configuration of its own, which any host may run.
class Identity {
 public:
  Process start(const NetworkHost& host, std::vector<std::string> arguments, bool with_token = true) const {
    std::vector<std::pair<std::string, std::string>> variables{{"XDG_CONFIG_HOME", home_.path()}};
    if (with_token) variables.emplace_back("RINGLET_TOKEN", "a-token-that-only-the-tests-have");
    return host.run(std::move(arguments), std::move(variables));
  }
  Outcome finish(const NetworkHost& host, std::vector<std::string> arguments) const {
    const Process process = start(host, std::move(arguments));
    process->close_stdin();
    return process->finish();
  }
  Process up(const NetworkHost& host, const std::string& name, bool with_token = true) const {
    Process process = start(host, {"up", "--group", "home", "--name", name, "--allow", kProgram}, with_token);
    process->wait_for_stderr("at TCP port");
    return process;
  }
  Outcome run(const NetworkHost& host, std::vector<std::string> options = {"--machines", "host2"}) const {
    options.insert(options.begin(), {"run", "--group", "home"});
    options.insert(options.end(), {"--", kProgram, "lines", "1"});
    return finish(host, std::move(options));
  }
  Json machines(const NetworkHost& host) const { return Json::parse(finish(host, {"machines", "--group", "home", "--json"}).out); }
  std::string fingerprint(const NetworkHost& host) const { return machines(host)["own"]["fingerprint"]; }
  std::string key(const NetworkHost& host) const { return machines(host)["own"]["key"]; }

 private:
  TemporaryDirectory home_;
};

void end(const Process& up) {
  up->send(SIGTERM);
  CHECK(up->finish().exit_code == 0);
}

}  // namespace

TEST_CASE("a first contact is shown once on both sides, and remembered") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const NetworkHost &here = network.host(0), &there = network.host(1);
  const Identity own, other;
  const Process up = other.up(there, "host2");
  const Outcome first = own.run(here);
  CAPTURE(first.err, up->out());
  CHECK(first.exit_code == 0);
  CHECK_THAT(first.err, Contains("ringlet run: first contact with host2: its key is " + other.fingerprint(there) +
                                 "; `ringlet machines` there shows whether that is so\n"));
  up->wait_for_stdout("its key is " + own.fingerprint(here));
  const Outcome second = own.run(here);
  CHECK(second.exit_code == 0);
  CHECK_THAT(second.err, !Contains("contact"));
  end(up);
  CHECK(up->out().find("first contact") == up->out().rfind("first contact"));
  const Json known = own.machines(here)["machines"];
  REQUIRE(known.size() == 1);
  CHECK(known[0]["name"] == "host2");
  CHECK(known[0]["trust"] == "seen");
  CHECK(known[0]["fingerprint"] == other.fingerprint(there));
}

TEST_CASE("a machine with the token and the name, but another key, takes no part") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  const NetworkHost &here = network.host(0), &there = network.host(1), &rogue = network.host(2);
  const Identity own, other, impostor;
  {
    const Process up = other.up(there, "host2");
    REQUIRE(own.run(here).exit_code == 0);
    end(up);
  }
  const Process up = impostor.up(rogue, "host2");
  const Outcome refused = own.run(here);
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 126);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Contains("host2 is not the machine that is known by this name") && Contains(other.fingerprint(there)) &&
                              Contains(impostor.fingerprint(rogue)) && Contains("ringlet machines remove host2 --group home"));
  // Beside a machine that is what it says the job goes on without the other.
  const Process right = other.up(there, "host2");
  const Outcome both = own.run(here, {"--wait", "2"});
  CAPTURE(both.err);
  CHECK(both.exit_code == 0);
  CHECK_THAT(both.err, Contains("the job goes on without some machines") && Contains(impostor.fingerprint(rogue)));
  CHECK_THAT(up->out(), !Contains("started"));
  right->wait_for_stdout("started");
  end(right);
  end(up);
}

TEST_CASE("a removed machine is refused by the one that removed it, with its key and with another") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const NetworkHost &here = network.host(0), &there = network.host(1);
  const Identity own, fresh, other;
  const Process up = other.up(there, "host2");
  REQUIRE(own.run(here).exit_code == 0);
  const std::string name = other.machines(there)["machines"][0]["name"];
  REQUIRE(other.finish(there, {"machines", "remove", name, "--group", "home"}).exit_code == 0);
  const Outcome removed = own.run(here);
  CAPTURE(removed.err);
  CHECK(removed.exit_code == 126);
  CHECK_THAT(removed.err, Contains("was removed from group home") && Contains("ringlet machines add " + name + " " + own.key(here)));
  const Outcome unknown = fresh.run(here);
  CHECK(unknown.exit_code == 126);
  CHECK_THAT(unknown.err, Contains(fresh.fingerprint(here) + " is not known here") && Contains("closed"));
  up->wait_for_stdout("refused ", 2);
  const Json report = Json::parse(own.finish(here, {"doctor", "--group", "home", "--json"}).out);
  CHECK_THAT(report["findings"].dump(), Contains("not-trusted"));
  REQUIRE(other.finish(there, {"machines", "add", name, own.key(here), "--group", "home"}).exit_code == 0);
  CHECK(own.run(here).exit_code == 0);
  end(up);
}

TEST_CASE("machines that have paired need no first contact") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Machine first(network.host(0)), second(network.host(1));
  REQUIRE(first.run({"token", "--save", "--group", "home"}).exit_code == 0);
  const Process host = first.show_code();
  REQUIRE(second.join(wait_for_code(*host, 1)["code"]).exit_code == 0);
  REQUIRE(host->finish().exit_code == 0);
  const auto shown = [](const Machine& machine) { return Json::parse(machine.run({"machines", "--group", "home", "--json"}).out); };
  for (const auto& [one, other, name] : {std::tuple(&first, &second, "host2"), std::tuple(&second, &first, "host1")}) {
    const Json known = shown(*one)["machines"];
    REQUIRE(known.size() == 1);
    CHECK(known[0]["name"] == name);
    CHECK(known[0]["trust"] == "paired");
    CHECK(known[0]["key"] == shown(*other)["own"]["key"]);
  }
  const Process up = second.start({"up", "--group", "home", "--name", "host2", "--allow", kProgram});
  up->wait_for_stderr("at TCP port");
  const Outcome outcome = first.run({"run", "--group", "home", "--", kProgram, "lines", "1"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, !Contains("contact"));
  end(up);
  CHECK_THAT(up->out(), Contains("started") && !Contains("contact"));
}
