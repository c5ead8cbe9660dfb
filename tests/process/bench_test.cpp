#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

std::vector<nlohmann::json> rows_of(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

}  // namespace

TEST_CASE("bench starts its own ranks, checks every result and prints a row per size") {
  const std::string operation = GENERATE("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all");
  const std::string dtype = GENERATE("f32", "bf16", "bool", "complex64", "i8");
  const Outcome outcome =
      run_command({"bench", "--ranks", "3", "--op", operation, "--dtype", dtype, "--sizes", "24,4KiB,1MiB", "--seconds", "0.01", "--json"});
  CAPTURE(operation, dtype, outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto rows = rows_of(outcome.out);
  REQUIRE(rows.size() == 3);
  for (const auto& row : rows) {
    CHECK(row.at("op") == operation);
    CHECK(row.at("dtype") == dtype);
    CHECK(row.at("ranks") == 3);
    CHECK(row.at("checked") == true);
    CHECK(row.at("min_us").get<double>() > 0);
    CHECK(row.at("median_us").get<double>() >= row.at("min_us").get<double>());
    CHECK(row.contains("p99_us"));
    CHECK(row.at("busbw_GBs").get<double>() > 0);
    CHECK(row.at("algbw_GBs").get<double>() > 0);
    CHECK_FALSE(row.at("algorithm").get<std::string>().empty());
    CHECK_FALSE(row.at("links").get<std::string>().empty());
  }
  CHECK(rows[0].at("bytes") == 24);
}

TEST_CASE("bench averages as gradients are, by every wire") {
  const std::string wire = GENERATE("f16", "bf16", "int8", "int4");
  const std::string dtype = GENERATE("f32", "bf16", "f64");
  const Outcome outcome =
      run_command({"bench", "--ranks", "3", "--wire", wire, "--dtype", dtype, "--sizes", "24,4KiB,1MiB", "--seconds", "0.01", "--json"});
  CAPTURE(wire, dtype, outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  for (const auto& row : rows_of(outcome.out)) {
    CHECK(row.at("wire") == wire);
    CHECK(row.at("checked") == true);
    if (wire.starts_with("int")) CHECK(row.at("algorithm") == "direct");
  }
  CHECK_THAT(run_command({"bench", "--wire", "int3"}).err, Contains("--wire int3") && Contains("int8"));
  CHECK_THAT(run_command({"bench", "--wire", wire, "--op", "broadcast"}).err, Contains("--op all_reduce"));
}

TEST_CASE("ranks of one machine read each other's memory unless told not to, also where their links are encrypted") {
  const std::string setting = GENERATE("", "on", "off");
  const std::string token = GENERATE("", "a token for this test");
  CommandProcess bench({"bench", "--ranks", "3", "--sizes", "4,64KiB,3MiB", "--seconds", "0.01", "--json"},
                       {{"RINGLET_PEER_MEMORY", setting}, {"RINGLET_TOKEN", token}});
  const Outcome outcome = bench.finish();
  CAPTURE(setting, token, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  for (const auto& row : rows_of(outcome.out)) {
    CHECK(row.at("checked") == true);
    const std::string links = row.at("links");
    CHECK(links == (setting == "off" ? "tcp" : RINGLET_LOCAL_LINKS));
    CHECK((row.at("cipher") != "none") == (links == "tcp" && !token.empty()));
  }
}

TEST_CASE("where one rank keeps its memory to itself, its links are plain") {
  const Outcome outcome = run_command({"launch", "-n", "2", "--no-prefix", "--", "sh", "-c",
                                       "RINGLET_PEER_MEMORY=$( [ $RINGLET_RANK = 1 ] && echo off || echo on ) exec \"$0\" bench --sizes "
                                       "1MiB --seconds 0.01 --json",
                                       RINGLET_COMMAND});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(rows_of(outcome.out).at(0).at("links") == "tcp");
}

TEST_CASE("bench and plan refuse to be given ranks where they are ranks of a group already") {
  const std::vector<std::string> launch{"launch", "-n", "2", "--", RINGLET_COMMAND};
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.begin(), launch.begin(), launch.end());
    const Outcome outcome = run_command(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(why));
  };
  const std::string of_bench = "--ranks 3: this is a rank of a group of 2 already";
  refused({"bench", "--ranks", "3", "--sizes", "4"}, of_bench);
  refused({"bench", "--ranks", "3", "--sizes", "4", "--order"}, of_bench);
  refused({"plan", "--model", "1M", "-n", "3"}, "this is a rank of a group already");
}

TEST_CASE("bench measures the group that it was launched in") {
  const Outcome outcome =
      run_command({"launch", "-n", "2", "--no-prefix", "--", RINGLET_COMMAND, "bench", "--sizes", "4", "--seconds", "0.01", "--json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto rows = rows_of(outcome.out);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("ranks") == 2);
  CHECK(rows[0].at("algorithm") == "exchange");
}

TEST_CASE("bench compares links with and without encryption, over TCP") {
  const std::string cipher = GENERATE("aes256gcm", "chacha20");
  CommandProcess bench({"bench", "--encrypt", "--sizes", "4,256KiB", "--seconds", "0.05", "--json"}, {{"RINGLET_CIPHER", cipher}});
  const Outcome outcome = bench.finish();
  CAPTURE(cipher, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto rows = rows_of(outcome.out);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    CHECK(row.at("checked") == true);
    CHECK(row.at("links") == "tcp");
    CHECK(row.at("cipher") == cipher);
    CHECK(row.at("plain_us").get<double>() > 0);
    CHECK(row.at("encrypted_us").get<double>() > 0);
    CHECK(row.at("ratio").get<double>() == Approx(row.at("encrypted_us").get<double>() / row.at("plain_us").get<double>()));
    CHECK(row.at("encrypted_busbw_GBs").get<double>() > 0);
  }
}

TEST_CASE("bench compares additions in any order and in that of the ranks") {
  const Outcome outcome =
      run_command({"bench", "--order", "--ranks", "3", "--op", "reduce", "--sizes", "4,1MiB", "--seconds", "0.05", "--json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto rows = rows_of(outcome.out);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    CHECK(row.at("checked") == true);
    CHECK(row.at("ratio").get<double>() == Approx(row.at("rank_order_us").get<double>() / row.at("any_order_us").get<double>()));
    CHECK(row.at("any_order_busbw_GBs").get<double>() > 0);
  }
}

TEST_CASE("bench refuses what it cannot measure") {
  const auto refused = [](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.begin(), "bench");
    const Outcome outcome = run_command(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(why));
  };
  refused({"--ranks", "0"}, "--ranks 0");
  refused({"--ranks", "-3"}, "--ranks -3");
  refused({"--ranks", "many"}, "many");
  refused({"--op", "gossip"}, "--op gossip");
  refused({"--dtype", "f8"}, "--dtype f8");
  refused({"--sizes", "12,big"}, "'big' is not a size");
  refused({"--sizes", "99999999999999GiB"}, "is not a size");
  refused({"--sizes", "2"}, "less than one element of f32");
  refused({"--sizes", ""}, "--sizes");
  refused({"--seconds", "-1"}, "--seconds -1");
  refused({"--order", "--encrypt"}, "--order");
}
