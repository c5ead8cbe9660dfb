#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "merged_trace.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

constexpr int kSteps = 12;

std::vector<std::string> traced_training(std::vector<std::string> before, const std::vector<std::string>& more) {
  before.insert(before.end(), {TRAIN_TEXT, "--data", TRAIN_TEXT_DATA, "--layers", "1", "--width", "32", "--heads", "2", "--context", "32",
                               "--batch", "4", "--steps", std::to_string(kSteps)});
  before.insert(before.end(), more.begin(), more.end());
  return before;
}

Json sums_of(const std::string& file, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"trace", "summary", file, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_command(arguments);
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return Json::parse(outcome.out);
}

}  // namespace

TEST_CASE("a trace of train_text tells the parts of its steps, and how much of the averages is hidden") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome outcome = run_command(traced_training({"launch", "-n", "2", "--trace", file, "--"}, {"--all-reduce-size", "8192"}));
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const Json sums = sums_of(file, {"--within", "step"});
  CHECK(sums["dropped"] == 0);
  REQUIRE(sums["ranks"].size() == 2);
  for (const Json& rank : sums["ranks"]) {
    for (const char* part : {"step", "forward", "backward", "rest of the average", "optimizer"})
      CHECK(rank["spans"][part]["count"] == kSteps);
    CHECK(rank["spans"].count("validation") == 0);
    const double seconds = rank["seconds"], computed = rank["computed_seconds"], waited = rank["waited_seconds"];
    CHECK(seconds == Approx(rank["spans"]["step"]["seconds"].get<double>()));
    CHECK(computed + waited <= seconds * 1.0001);
    CHECK(rank["spans"]["backward"]["seconds"].get<double>() < seconds);
    CHECK(rank["buckets"]["seconds"].get<double>() > 0);
    CHECK(rank["buckets"]["seconds"].get<double>() < seconds);
    const double hidden = rank["buckets"]["hidden"];
    CHECK((hidden >= 0 && hidden <= 1));
  }
  // Buckets leave while the gradients of other modules are still being computed; the last ones have none behind them.
  const MergedTrace trace(file);
  for (const int rank : {0, 1}) {
    const auto buckets = trace.spans(rank, "buckets"), backward = trace.spans(rank, "backward");
    REQUIRE(backward.size() == kSteps);
    for (const Span& step : backward) {
      const auto left_early = [&](const Span& bucket) {
        return bucket.begin > step.begin && bucket.begin < step.begin + 0.999 * (step.end - step.begin);
      };
      CHECK(std::count_if(buckets.begin(), buckets.end(), left_early) >= 2);
    }
  }
  // What is outside of the steps is there without the limit.
  CHECK(sums_of(file)["ranks"][0]["spans"]["validation"]["count"] >= 2);
}

TEST_CASE("train_text that is alone writes its trace itself, and with few averages too") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome alone = run_command(traced_training({"launch", "-n", "1", "--"}, {"--trace", file}));
  CAPTURE(alone.out, alone.err);
  CHECK(alone.exit_code == 0);
  CHECK(sums_of(file, {"--within", "step"})["ranks"][0]["spans"]["optimizer"]["count"] == kSteps);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);

  const Outcome outer = run_command(traced_training({"launch", "-n", "2", "--trace", file, "--"}, {"--inner-steps", "4"}));
  CAPTURE(outer.out, outer.err);
  CHECK(outer.exit_code == 0);
  for (const Json& rank : sums_of(file)["ranks"])
    for (const char* part : {"step", "forward", "backward", "optimizer"}) CHECK(rank["spans"][part]["count"] == kSteps);
}
