#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

namespace {

Outcome plan(Words arguments) {
  arguments.insert(arguments.begin(), "plan");
  return run_command(std::move(arguments));
}

Json plan_json(Words arguments) {
  arguments.emplace_back("--json");
  const Outcome outcome = plan(std::move(arguments));
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return Json::parse(outcome.out);
}

Words wires_of(const Json& plan) {
  Words wires;
  for (const Json& one : plan.at("predictions")) wires.push_back(one.at("wire").get<std::string>());
  wires.erase(std::unique(wires.begin(), wires.end()), wires.end());
  return wires;
}

void check_measured(const Json& plan, int ranks) {
  CHECK(plan.at("ranks") == ranks);
  CHECK(plan.at("measured") == true);
  CHECK(plan.at("ports").size() == static_cast<std::size_t>(ranks));
  for (const Json& port : plan.at("ports")) {
    CHECK(port.at("sends_mbit").get<double>() > 0);
    CHECK(port.at("receives_mbit").get<double>() > 0);
    CHECK(port.at("latency_us").get<double>() > 0);
  }
  CHECK(plan.at("links").size() == static_cast<std::size_t>(ranks * (ranks - 1) / 2));
  for (const Json& link : plan.at("links")) {
    CHECK(link.at("ranks").at(0).get<int>() < link.at("ranks").at(1).get<int>());
    CHECK(link.at("both_ways_mbit").get<double>() > 0);
  }
  CHECK_FALSE(plan.at("predictions").empty());
  for (const Json& one : plan.at("predictions")) CHECK(one.at("communication_ms").get<double>() > 0);
}

}  // namespace

TEST_CASE("plan starts ranks here, measures their links and predicts each wire") {
  const Json found = plan_json({"-n", "3", "--model", "1M", "--seconds", "0.2", "--names", "a,b,c"});
  check_measured(found, 3);
  CHECK(wires_of(found) == Words{"f32", "bf16", "int8", "int4", "f32", "bf16", "int8", "int4"});
  CHECK(found.at("predictions").back().at("training") == "fsdp");
  CHECK(found.at("parameters") == 1'000'000);
  CHECK(found.at("ports").at(1).at("host") == "b");
  CHECK(found.at("take").is_null());
}

TEST_CASE("plan measures the group that it was launched in, and shows how far it is") {
  const Outcome outcome = run_command({"launch", "-n", "2", "--no-prefix", "--", RINGLET_COMMAND, "plan", "--model", "1M", "--wire",
                                       "int8,f32", "--step-time", "80ms", "--seconds", "0.2", "--json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const Json found = Json::parse(outcome.out);
  check_measured(found, 2);
  CHECK(wires_of(found) == Words{"int8", "f32", "int8", "f32"});
  CHECK_FALSE(found.at("take").is_null());
  CHECK_THAT(outcome.err, Contains("measuring links, round 1 of 1"));
}

TEST_CASE("plan predicts from given numbers, without a peer") {
  const Json equal = plan_json({"--network", "4x1gbit", "--model", "100M", "--step-time", "5s", "--tokens", "10k"});
  CHECK(equal.at("measured") == false);
  CHECK(equal.at("slow").empty());
  CHECK(equal.at("take").at("wire") == "int8");
  CHECK(equal.at("take").at("inner_steps") == 1);
  const Json& as_it_is = equal.at("predictions").at(0);
  CHECK(as_it_is.at("communication_ms").get<double>() == Approx(5100).epsilon(0.05));
  CHECK(as_it_is.at("step_ms").get<double>() == Approx(5000 + as_it_is.at("communication_ms").get<double>()));
  CHECK(as_it_is.at("tokens_per_s").get<double>() == Approx(40e6 / as_it_is.at("step_ms").get<double>()));
  CHECK(as_it_is.at("bytes_per_parameter").get<double>() == Approx(6).epsilon(0.01));

  const Json slow = plan_json({"--links", "0:1gbit,3:250mbit", "--model", "100M", "--step-time", "0.5s"});
  CHECK(slow.at("ranks") == 4);
  REQUIRE(slow.at("slow").size() == 1);
  CHECK(slow.at("slow").at(0).at("rank") == 3);
  CHECK(slow.at("slow").at(0).at("compute_share") == 0.25);
  CHECK(slow.at("take").at("setting") == "");
  CHECK(slow.at("predictions").at(1).at("setting") == "RINGLET_PARTS=measured");
  CHECK(slow.at("take").at("inner_steps").get<int>() > 1);
  // What the rank brings counts between two averages.
  const double compute_ms = 500 * slow.at("take").at("inner_steps").get<double>();
  const double with = 4 / (compute_ms + slow.at("slow").at(0).at("with_ms").get<double>());
  const double without = 3 / (compute_ms + slow.at("slow").at(0).at("without_ms").get<double>());
  CHECK(slow.at("slow").at(0).at("gain").get<double>() == Approx(with / without));

  const Json shared = plan_json({"--network", "2x1gbit", "-n", "2", "--model", "100M"});
  CHECK(shared.at("ranks") == 4);
  CHECK(shared.at("ports").at(3).at("machine") == 1);
  CHECK(shared.at("predictions").at(0).at("algorithm") == "machines");

  const Json changed = plan_json({"--network", "4x1gbit", "--links", "3:250mbit", "--latency", "200us", "--model", "100M"});
  CHECK(changed.at("slow").at(0).at("rank") == 3);
  CHECK(changed.at("ports").at(0).at("latency_us").get<double>() == Approx(200));
}

TEST_CASE("plan says in words what to take, and what a slow rank costs") {
  const Outcome slow =
      plan({"--network", "3x1gbit,1x250mbit", "--model", "100M", "--step-time", "0.5s", "--names", "alpha,beta,gamma,delta"});
  CAPTURE(slow.out, slow.err);
  REQUIRE(slow.exit_code == 0);
  CHECK_THAT(slow.out, Contains("4 ranks, 100,000,000 parameters in f32, links as given, a rank computes for 500 ms in a step"));
  CHECK_THAT(slow.out, Contains("delta") && Contains("slow: 0.25 of the others"));
  CHECK_THAT(slow.out, Contains("OuterTrainer with inner_steps = ") && Contains("the average is int8 by hub\n"));
  CHECK_THAT(slow.out, Contains("rank 3 (delta) has slow links") && Contains("Training is 1.14 times as fast with it."));
  const Outcome unrounded = plan({"--network", "3x1gbit,1x250mbit", "--model", "100M", "--step-time", "60s"});
  CHECK_THAT(unrounded.out, Contains("Take f32 by hub") && Contains("RINGLET_PARTS=measured on all ranks"));
  const Outcome costly = plan({"--network", "3x1gbit,1x250mbit", "--model", "100M", "--wire", "f32", "--step-time", "15s"});
  CHECK_THAT(costly.out, Contains("it costs more than it brings") && Contains("None of these wires takes less"));
  const Outcome fast = plan({"--network", "4x1gbit", "--model", "100M", "--step-time", "5s"});
  CHECK_THAT(fast.out,
             Contains("Take int8 by direct") && Contains("Wire::int8({.feedback = true})") && Contains("No rank has slow links."));
  const Outcome unknown = plan({"--network", "4x1gbit", "--model", "100M"});
  CHECK_THAT(unknown.out, Contains("Take the first of these") && Contains("f32 by ring") && Contains("int4 by direct"));
}

TEST_CASE("plan shows ranks with equal lines in one row") {
  const Outcome outcome = plan({"--network", "3x1gbit,2x100mbit,1x1gbit", "--model", "1M", "--wire", "int4"});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("\n0 to 2 ") && Contains("\n3 to 4 ") && Contains("\n5 "));
  CHECK_THAT(outcome.out, !Contains("\n1 ") && Contains("rank 3 has slow links") && Contains("rank 4 has slow links"));
  const Outcome named = plan({"--network", "2x1gbit", "--model", "1M", "--wire", "int4", "--names", "alpha,beta"});
  CHECK_THAT(named.out, Contains("\n0 ") && Contains("\n1 "));
}

TEST_CASE("plan refuses what it cannot predict, with the value and what to do") {
  const auto refused = [](Words arguments, const std::string& why) {
    const Outcome outcome = plan(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains(why));
  };
  const auto refused_with_model = [&](Words arguments, const std::string& why) {
    arguments.insert(arguments.end(), {"--model", "100M"});
    refused(std::move(arguments), why);
  };
  refused({"--network", "4x1gbit"}, "--model is required");
  refused({"--network", "4x1gbit", "--model", "big"}, "--model 'big' is no number; write it as 100M");
  refused({"--network", "4x1gbit", "--model", "0"}, "--model '0' is out of range");
  refused_with_model({}, "no ranks: name machines with --hosts");
  refused_with_model({"--network", "4x1gbit", "--wire", "int3"}, "there is no wire 'int3'");
  refused_with_model({"--network", "4x1gbit", "--wire", "f32,int8,f32"}, "'f32' is there twice");
  refused_with_model({"--network", "4x1gbit", "--dtype", "f16", "--wire", "f32"}, "there is no wire 'f32'; f16, bf16, int8 and int4");
  refused_with_model({"--network", "4x1gbit", "--names", "a,b,,d"}, "--names 'a,b,,d': a name is empty");
  refused_with_model({"--network", "4x1gbit", "--dtype", "i8"}, "--dtype i8");
  refused_with_model({"--network", "4x1gbit", "--dtype", "f8"}, "--dtype f8");
  refused_with_model({"--network", "4x1gbit", "--step-time", "soon"}, "--step-time 'soon' is no time");
  refused_with_model({"--network", "4x1gbit", "--step-time", "0"}, "--step-time 0");
  refused_with_model({"--network", "4x1gbit", "--tokens", "1k"}, "give --step-time, too");
  refused_with_model({"--network", "4x1gbit", "--step-time", "1", "--tokens", "few"}, "--tokens 'few'");
  refused_with_model({"--network", "4 switches"}, "--network '4 switches' is no network");
  refused_with_model({"--network", "4x1gbit", "--links", "7:1gbit"}, "--links '7:1gbit': of 4 lines the last is 3");
  refused_with_model({"--network", "4x1gbit", "--latency", "long"}, "--latency 'long'");
  refused_with_model({"--network", "4x1gbit", "--names", "a,b"}, "there are 4 ranks");
  refused_with_model({"--network", "4x1gbit", "--hosts", "alpha,beta"}, "--network and --links start no ranks");
  refused_with_model({"--network", "1000x1gbit", "-n", "2"}, "1000 machines with 2 ranks each");
  refused_with_model({"-n", "4", "--latency", "1ms"}, "--latency 1ms");
  refused_with_model({"-n", "1"}, "one rank has nobody to talk to");
  refused_with_model({"-n", "0"}, "-n 0");
  refused_with_model({"-n", "2", "--seconds", "-1"}, "--seconds -1");
  refused_with_model({"-n", "2", "--names", "a"}, "there are 2 ranks");
  refused_with_model({"--hosts", "alpha"}, "one rank has nobody to talk to");
  refused_with_model({"--hosts", "alpha,,beta"}, "--hosts");
  refused_with_model({"-n", "2", "--coordinator", "alpha"}, "--coordinator alpha");
}

TEST_CASE("plan in a group that its names do not fit ends on all ranks, and one says why") {
  const Outcome outcome = run_command({"launch", "-n", "2", "--", RINGLET_COMMAND, "plan", "--model", "1M", "--names", "a,b,c"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--names has 3 names, and there are 2 ranks"));
}
