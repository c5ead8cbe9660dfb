#include "tools/prediction/advice.hpp"

#include <catch2/catch.hpp>

#include "core/plan/topology.hpp"
#include "tools/prediction/network_text.hpp"

using namespace ringlet;
using namespace ringlet::prediction;

namespace {

constexpr StepModel kModel{100'000'000};

RankNetwork network(const char* text, int ranks_per_machine = 1) {
  return network_of_rates(parse_network(text).value(), 50'000, ranks_per_machine).value();
}

Advice advice_for(const char* text, double compute_seconds) {
  const std::vector<WireChoice> wires = usual_wires(kModel.dtype);
  return advise(predict(kModel, wires, network(text)), wires, compute_seconds * 1e9);
}

}  // namespace

TEST_CASE("averages of 100 million parameters at 1 Gbit/s take what their bytes take") {
  const std::vector<WireChoice> wires = usual_wires(DType::f32);
  const std::vector<Prediction> all = predict(kModel, wires, network("4x1gbit"));
  const double expected_seconds[] = {5.1, 2.55, 1.29, 0.68}, expected_bytes[] = {6, 3, 1.52, 0.80};
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const Prediction& best = best_average(all, wires[i]);
    CAPTURE(name_of(wires[i], kModel));
    CHECK(best.setting == AlgorithmSetting::none);
    CHECK(best.nanoseconds / 1e9 == Approx(expected_seconds[i]).epsilon(0.05));
    CHECK(best.bytes_per_parameter == Approx(expected_bytes[i]).epsilon(0.01));
  }
  // FSDP gathers the parameters in f32.
  const double sharded_bytes[] = {6, 4.5, 3.76, 3.4};
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const Prediction& sharded = all[all.size() - wires.size() + i];
    CAPTURE(name_of(wires[i], kModel));
    CHECK((sharded.sharded && sharded.wire == wires[i]));
    CHECK(sharded.nanoseconds / 1e9 == Approx(0.85 * sharded_bytes[i]).epsilon(0.05));
    CHECK(sharded.bytes_per_parameter == Approx(sharded_bytes[i]).epsilon(0.01));
  }
  // With equal links no setting changes the parts.
  for (const Prediction& one : all) CHECK(one.setting != AlgorithmSetting::measured_parts);
}

TEST_CASE("each setting leads to another algorithm") {
  const std::vector<Prediction> all = predict(kModel, {std::nullopt}, network("3x1gbit,1x250mbit"));
  REQUIRE(all.size() == 3);
  CHECK(all[0].setting == AlgorithmSetting::none);
  CHECK(all[0].algorithm == Algorithm::ring);
  CHECK(all[1].setting == AlgorithmSetting::measured_parts);
  CHECK(all[1].algorithm == Algorithm::hub);
  CHECK(all[2].sharded);
  // The slow rank sends each byte once instead of one and a half times.
  CHECK(all[0].nanoseconds / all[1].nanoseconds == Approx(1.5).epsilon(0.05));
  CHECK(&best_average(all, std::nullopt) == &all[1]);
  const std::vector<Prediction> equal = predict(kModel, {std::nullopt}, network("4x1gbit"));
  REQUIRE(equal.size() == 3);
  CHECK(equal[1].setting == AlgorithmSetting::rank_order);
  CHECK(equal[1].algorithm == Algorithm::direct);
}

TEST_CASE("averages in blocks need no setting to follow slow links") {
  const std::vector<Prediction> all = predict_averages(kModel, Wire::int8(), network("3x1gbit,1x250mbit"));
  REQUIRE(all.size() == 1);
  CHECK(all[0].setting == AlgorithmSetting::none);
  CHECK(all[0].algorithm == Algorithm::hub);
  CHECK(all[0].nanoseconds / predict_averages(kModel, Wire::int8(), network("4x250mbit"))[0].nanoseconds == Approx(1 / 1.5).epsilon(0.05));
}

TEST_CASE("the wire is the first with which communication takes a quarter of a step") {
  const std::vector<Prediction> all = predict(kModel, usual_wires(DType::f32), network("4x1gbit"));
  CHECK(least_compute_ns(best_average(all, std::nullopt)) / 1e9 == Approx(15.3).epsilon(0.05));
  CHECK(advice_for("4x1gbit", 17).average.wire == std::nullopt);
  CHECK(advice_for("4x1gbit", 9).average.wire == WireChoice(DType::bf16));
  CHECK(advice_for("4x1gbit", 5).average.wire == WireChoice(Wire::int8()));
  CHECK(advice_for("4x1gbit", 2.5).average.wire == WireChoice(Wire::int4()));
  CHECK(advice_for("4x1gbit", 2.5).enough);
  const Advice between = advice_for("4x1gbit", 1);
  CHECK(between.average.wire == WireChoice(Wire::int4()));
  CHECK(between.inner_steps == 1);
  CHECK_FALSE(between.enough);
}

TEST_CASE("where every wire takes longer than computing, averages come as seldom as they need") {
  const Advice advice = advice_for("4x1gbit", 0.3);
  CHECK(advice.average.wire == WireChoice(Wire::int8()));
  // 1.29 s for each average; a third of 0.3 s for each step.
  CHECK(advice.inner_steps == 20);
  CHECK(advice.ns_per_step == Approx(advice.average.nanoseconds / 20));
  CHECK(advice.enough);
  CHECK(advice_for("4x1gbit", 0.1).inner_steps == 50);
  const Advice hopeless = advice_for("4x1mbit", 0.001);
  CHECK(hopeless.inner_steps == 50);
  CHECK_FALSE(hopeless.enough);
  // Of the wires that are asked for alone the cheapest is taken.
  const std::vector<WireChoice> wires{std::nullopt};
  CHECK(advise(predict(kModel, wires, network("4x1gbit")), wires, 1e9).inner_steps == 20);
}

static PeerWorth worth_of(int rank, const RankNetwork& network) {
  const std::vector<Prediction> averages = predict_averages(kModel, std::nullopt, network);
  return worths_of({rank}, best_average(averages, std::nullopt), kModel, network).front();
}

TEST_CASE("a slow rank is worth its computing from a certain step on") {
  const RankNetwork slow = network("3x1gbit,1x100mbit");
  const PeerWorth worth = worth_of(3, slow);
  CHECK(worth.speed < 0.2);
  CHECK(worth.compute_share() == 0.25);
  // 400 MB through 11.8 MB/s once, and 533 MB through 117.7 MB/s.
  CHECK(worth.with_ns / 1e9 == Approx(34).epsilon(0.05));
  CHECK(worth.without_ns / 1e9 == Approx(4.53).epsilon(0.05));
  CHECK(worth.breaks_even == Approx(3 * worth.with_ns - 4 * worth.without_ns));
  CHECK(worth.gain(worth.breaks_even) == Approx(1));
  CHECK(worth.gain(worth.breaks_even / 2) < 1);
  CHECK(worth.gain(worth.breaks_even * 2) > 1);
  const PeerWorth equal = worth_of(0, network("4x1gbit"));
  CHECK(equal.speed == 1);
  CHECK(equal.breaks_even == 0);
  CHECK(equal.gain(1e9) > 1);
  // Without its partner a rank communicates nothing.
  const PeerWorth of_two = worth_of(1, network("2x1gbit"));
  CHECK(of_two.without_ns == 0);
  CHECK(of_two.breaks_even == Approx(of_two.with_ns));
}

TEST_CASE("slow ranks are those that the ranks themselves would find") {
  using Speeds = std::vector<std::uint32_t>;
  CHECK(speeds_of(network("4x1gbit")) == Speeds{1024, 1024, 1024, 1024});
  CHECK(speeds_of(network("3x1gbit,1x250mbit")) == Speeds{1024, 1024, 1024, 256});
  // Two ranks have one link, and more than 4 Gbit/s count alike.
  CHECK(speeds_of(network("1x1gbit,1x100mbit")) == Speeds{1024, 1024});
  CHECK(speeds_of(network("3x40gbit,1x10gbit")) == Speeds{1024, 1024, 1024, 1024});
}

TEST_CASE("where machines have several ranks, these add among themselves first, and a slow machine counts with all its ranks") {
  const std::vector<Prediction> all = predict(kModel, {std::nullopt}, network("2x1gbit", 2));
  CHECK(all[0].algorithm == Algorithm::machines);
  CHECK(all[0].setting == AlgorithmSetting::none);
  // Two machines exchange half of the buffer twice.
  CHECK(all[0].bytes_per_parameter == Approx(4).epsilon(0.01));
  CHECK(all[1].setting == AlgorithmSetting::own_machines);
  CHECK(all[1].algorithm == Algorithm::ring);
  CHECK(all[1].bytes_per_parameter == Approx(6).epsilon(0.01));
  const PeerWorth worth = worth_of(4, network("2x1gbit,1x100mbit", 2));
  CHECK(worth.count == 2);
  CHECK(worth.compute_share() == Approx(1.0 / 3));
  CHECK(worth.gain(worth.breaks_even) == Approx(1));
  // The other one of two machines needs no network.
  CHECK(worth_of(2, network("2x1gbit", 2)).without_ns < 0.2e9);
}
