#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/process/ssh_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

TEST_CASE("plan counts ranks of one host as such, and measures its links once") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const Outcome outcome =
      found->run_other({"plan", "--hosts", "10.77.0.1,root@10.77.0.2:2", "--model", "1M", "--seconds", "0.3", "--json"});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const Json plan = Json::parse(outcome.out);
  CHECK(plan.at("ranks") == 3);
  CHECK(plan.at("ports").at(1).at("machine") == plan.at("ports").at(2).at("machine"));
  CHECK(plan.at("ports").at(0).at("machine") != plan.at("ports").at(1).at("machine"));
  CHECK(plan.at("links").size() == 1);
  CHECK(plan.at("predictions").at(0).at("algorithm") == "machines");
}

TEST_CASE("plan names the host that it cannot reach") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const Outcome outcome = found->run_other({"plan", "--hosts", "10.77.0.1,10.77.0.99", "--model", "100M"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("ringlet plan: 10.77.0.99: "));
  const Outcome missing =
      found->run_other({"plan", "--hosts", "10.77.0.1,10.77.0.2", "--remote-ringlet", "/no/ringlet", "--model", "100M"});
  CAPTURE(missing.err);
  CHECK(missing.exit_code == 1);
  CHECK_THAT(missing.err, Contains("10.77.0.2") && Contains("/no/ringlet"));
}
