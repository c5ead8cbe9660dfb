#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Json = nlohmann::json;

namespace {

struct CSpan {
  int track;
  double begin, end;  // microseconds
};

/// The spans of one process' own, by name.
std::map<std::string, std::vector<CSpan>> own_spans(const Json& trace, int process) {
  std::map<std::string, std::vector<CSpan>> spans;
  for (const Json& event : trace["traceEvents"]) {
    const bool is_own = event["pid"] == process && event["ph"] == "X" && (event["cat"] == "program" || event["cat"] == "wait");
    if (!is_own || event["name"] == "wait") continue;
    const double begin = event["ts"];
    spans[event["name"]].push_back({event["tid"], begin, begin + event["dur"].get<double>()});
  }
  return spans;
}

bool lies_within(const CSpan& inner, const std::vector<CSpan>& outer) {
  // Times are written with three digits.
  constexpr double kRounding = 0.0015;
  return std::any_of(outer.begin(), outer.end(), [&](const CSpan& span) {
    return span.track == inner.track && span.begin <= inner.begin + kRounding && inner.end <= span.end + kRounding;
  });
}

void check_spans(const std::string& file) {
  const Json trace = Json::parse(read_file(file));
  for (int rank = 0; rank < 2; ++rank) {
    CAPTURE(rank);
    auto spans = own_spans(trace, rank);
    CHECK(spans["step"].size() == 3);
    for (const char* name : {"forward", "next batch", "left open"}) {
      CAPTURE(name);
      CHECK(spans[name].size() == 3);
      for (const CSpan& span : spans[name]) CHECK(lies_within(span, spans["step"]));
    }
    REQUIRE(spans["loading"].size() == 1);
    REQUIRE(spans["around a thread"].size() == 1);
    CHECK(spans["loading"][0].track != spans["around a thread"][0].track);
    CHECK(spans["loading"][0].end <= spans["around a thread"][0].end);
    CHECK(spans["deep"].size() == 64);
    CHECK(spans["around a fork"].size() == 1);
    for (const char* name : {"never ended", "deeper", "before init", "in the child"}) CHECK(spans.count(name) == 0);
  }
}

void check_sums(const std::string& file) {
  const Outcome outcome = run_command({"trace", "summary", file, "--within", "step", "--json"});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const Json sums = Json::parse(outcome.out);
  REQUIRE(sums["ranks"].size() == 2);
  for (const Json& rank : sums["ranks"]) {
    CHECK(rank["spans"]["step"]["count"] == 3);
    CHECK(rank["spans"]["forward"]["count"] == 3);
    CHECK(rank["spans"].count("deep") == 0);
    CHECK(rank["spans"].count("next batch") == 0);
    CHECK(rank["waited_seconds"].get<double>() > 0);
    CHECK(rank["computed_seconds"].get<double>() > 0);
  }
}

}  // namespace

TEST_CASE("the trace of a launch has the spans of C programs") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome outcome = run_command({"launch", "-n", "2", "--trace", file, "--", RINGLET_C_SPANS});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  check_spans(file);
  check_sums(file);
}

TEST_CASE("a C program asks for its trace itself") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome outcome = run_command({"launch", "-n", "2", "--", RINGLET_C_SPANS, file});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(run_command({"trace", "merge", file}).exit_code == 0);
  check_spans(file);
  check_sums(file);
}
