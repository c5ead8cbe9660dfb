#include "tools/trace/summary.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/temporary_directory.hpp"
#include "tools/trace/intervals.hpp"

using namespace ringlet::trace;
using Catch::Contains;
using ringlet::test::TemporaryDirectory;

namespace {

/// A set of whole moments, as a reference.
using Moments = std::set<std::int64_t>;

Moments both(const Moments& one, const Moments& other) {
  Moments result;
  for (const std::int64_t moment : one)
    if (other.contains(moment)) result.insert(moment);
  return result;
}

/// A file of one process, in milliseconds.
class Written {
 public:
  explicit Written(std::string path) : path_(std::move(path)), file_(path_) { file_ << "[\n"; }
  Written& span(int process, const std::string& category, const std::string& name, int from, int to) {
    file_ << R"({"name":")" << name << R"(","cat":")" << category << R"(","ph":"X","ts":)" << from + 1000 << "000.000,\"dur\":" << to - from
          << "000.000,\"pid\":" << process << ",\"tid\":1,\"args\":{}},\n";
    return *this;
  }
  Written& raw(const std::string& line) { return text(line + ",\n"); }
  Written& text(const std::string& text) {
    file_ << text;
    return *this;
  }
  Summary sum(const std::optional<std::string>& within = std::nullopt) {
    file_.flush();
    return summarize(path_, within);
  }

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace

TEST_CASE("sets of moments are what a plain reference makes of them") {
  for (const std::uint64_t seed : ringlet::test::seeds(300)) {
    CAPTURE(seed);
    ringlet::SimRandom random(seed);
    Intervals one, other;
    Moments one_reference, other_reference;
    const auto fill = [&](Intervals& intervals, Moments& reference) {
      for (auto count = random.below(8); count > 0; --count) {
        const auto begin = static_cast<std::int64_t>(random.below(40)), end = begin + static_cast<std::int64_t>(random.below(12));
        intervals.add(begin, end);
        for (std::int64_t moment = begin; moment < end; ++moment) reference.insert(moment);
      }
    };
    fill(one, one_reference);
    fill(other, other_reference);
    CHECK(one.length() == static_cast<std::int64_t>(one_reference.size()));
    CHECK(one.empty() == one_reference.empty());
    CHECK(Intervals::both(one, other).length() == static_cast<std::int64_t>(both(one_reference, other_reference).size()));
    CHECK(Intervals::both(other, one).length() == static_cast<std::int64_t>(both(one_reference, other_reference).size()));
    const auto begin = static_cast<std::int64_t>(random.below(40)), end = begin + 1 + static_cast<std::int64_t>(random.below(5));
    Moments asked;
    for (std::int64_t moment = begin; moment < end; ++moment) asked.insert(moment);
    CHECK(one.contains(begin, end) == (both(asked, one_reference).size() == asked.size()));
    if (one_reference.empty()) continue;
    CHECK(one.first() == *one_reference.begin());
    CHECK(one.last() == *one_reference.rbegin() + 1);
  }
}

TEST_CASE("a summary says what was under way, and how much of that nobody waited for") {
  const TemporaryDirectory directory;
  Written file(directory.path() + "/t.json");
  // A step of 100 ms: 40 ms of collectives beside the backward pass, 20 ms for which the program waits.
  file.span(0, "program", "forward", 0, 30).span(0, "program", "backward", 30, 80).span(0, "program", "rest", 80, 100);
  file.span(0, "program", "step", 0, 100).span(0, "wait", "wait", 80, 100);
  file.span(0, "collective", "all_reduce", 40, 70).span(0, "collective", "all_reduce", 60, 100);
  file.span(0, "bucket", "all_reduce", 40, 90).span(0, "bucket", "all_reduce", 60, 95);
  file.raw(R"({"name":"buckets","ph":"b","cat":"gradients","id2":{"local":"0"},"ts":1.0,"pid":0})");
  // A second one, in which nothing is hidden, and something outside.
  file.span(0, "program", "step", 200, 250).span(0, "program", "forward", 200, 240).span(0, "wait", "wait", 240, 250);
  file.span(0, "collective", "all_reduce", 240, 250).span(0, "program", "validation", 120, 150).span(0, "program", "forward", 300, 310);
  file.span(7, "collective", "barrier", 10, 20);
  file.raw(R"({"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0, here"}})");
  file.raw(R"({"name":"ringlet_trace_end","ph":"M","pid":0,"args":{"dropped_by_threads":3,"dropped_by_file":4}})");

  const Summary all = file.sum();
  CHECK(all.dropped == 7);
  REQUIRE(all.ranks.size() == 2);
  const RankSummary& rank = all.ranks[0];
  CHECK(rank.process == 0);
  CHECK(rank.name == "rank 0, here");
  CHECK(rank.seconds == Approx(0.310));
  CHECK(rank.waited == Approx(0.030));
  CHECK(rank.computed == Approx(0.160));
  CHECK(rank.collectives.seconds == Approx(0.070));
  CHECK(rank.collectives.hidden == Approx(0.040));
  CHECK(rank.buckets.seconds == Approx(0.055));
  CHECK(rank.buckets.hidden == Approx(0.040));
  CHECK(rank.spans.at("forward").count == 3);
  CHECK(rank.spans.at("forward").seconds == Approx(0.080));
  CHECK(all.ranks[1].process == 7);
  CHECK(all.ranks[1].collectives.hidden == Approx(0.010));
  CHECK(all.ranks[1].spans.empty());

  const Summary steps = file.sum("step");
  REQUIRE(steps.ranks.size() == 1);
  CHECK(steps.ranks[0].seconds == Approx(0.150));
  CHECK(steps.ranks[0].computed == Approx(0.120));
  CHECK(steps.ranks[0].spans.at("forward").count == 2);
  CHECK(steps.ranks[0].spans.count("validation") == 0);

  const Summary backward = file.sum("backward");
  CHECK(backward.ranks[0].seconds == Approx(0.050));
  CHECK(backward.ranks[0].waited == 0);
  CHECK(backward.ranks[0].collectives.seconds == Approx(0.040));
  CHECK_THROWS_WITH(file.sum("none"), Contains("has no span of the program's own that is called 'none'"));
}

TEST_CASE("a trace in which nothing happened is told, and one that is not there") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(summarize(directory.path() + "/none", std::nullopt), Contains("cannot be read: No such file"));
  Written file(directory.path() + "/t.json");
  file.raw(R"({"name":"process_name","ph":"M","pid":0,"args":{"name":"rank 0"}})");
  CHECK_THROWS_WITH(file.sum(), Contains("is a trace in which nothing happened"));
  // A process that was killed may have left a part of its last line.
  file.span(0, "wait", "wait", 0, 5).text(R"({"name":"wait","cat":"wait","ph":"X","ts":7000,"du)");
  CHECK(file.sum().ranks.at(0).waited == Approx(0.005));
}
