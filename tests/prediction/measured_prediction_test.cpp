// Links are measured on the simulated network as `ringlet plan` does, and what is predicted from that is compared with the time that the
// engines take for the same step.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "core/gradients/bucket.hpp"
#include "core/plan/part_layout.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"
#include "tools/prediction/measured_links.hpp"
#include "tools/prediction/step_prediction.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::prediction;

namespace {

constexpr std::uint64_t kGigabit = 125'000'000;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

/// Ranks with ports of 1 Gbit/s, one of which may be slower.
struct TestNetwork {
  int size = 4;
  int slow = -1;
  std::uint64_t times = 1;
  AlgorithmSetting setting = AlgorithmSetting::none;
  std::vector<int> machines{};  // by rank; empty: each rank has its own
};

class TestRanks {
 public:
  explicit TestRanks(const TestNetwork& network) : network_(network), group_(setup_of(network)) {
    for (int rank = 0; rank < network.size; ++rank) {
      group_.sim().limit_port(group_.node(rank), rank == network.slow ? kGigabit / network.times : kGigabit);
      for (int other = 0; other < network.size; ++other) {
        if (other == rank || network.machines.empty() || network.machines[index(rank)] != network.machines[index(other)]) continue;
        PathOptions& inside = group_.sim().path(group_.node(rank), group_.node(other));
        inside.latency = {Duration::microseconds(10), Duration::microseconds(10)};
        inside.bytes_per_second = {5'000'000'000, 5'000'000'000};
      }
    }
    group_.meet();
  }
  ~TestRanks() { group_.close_cleanly(); }

  std::vector<MeasuredLink> measure() {
    std::vector<MeasuredLink> links;
    const std::vector<int> leads = leads_of(network_.size, network_.machines);
    for (const int one : leads)
      for (const int other : leads)
        if (one < other) links.push_back(measure(one, other));
    return links;
  }

  RankNetwork measured_network() {
    std::vector<MeasuredLink> within;
    if (!network_.machines.empty())
      for (const auto& [one, other] : pairs_within(network_.size, network_.machines)) within.push_back(measure(one, other));
    return network_of(network_.size, network_.machines, measure(), within);
  }

  /// What the ranks notice while they train.
  void notice(const std::vector<std::uint32_t>& speeds) {
    if (group_.world(0).parts().in_use() == speeds) return;
    std::optional<bool> changed;
    group_.world(0).parts().change(speeds, [&](bool is) { changed = is; });
    REQUIRE(group_.sim().run_until([&] { return changed.has_value(); }, {.time = Duration::seconds(10)}) == RunEnd::done);
    REQUIRE(changed == true);
  }

  /// The virtual time of a step's collectives, one after the other, by the engines.
  double step_ns(const StepModel& model, const Prediction& prediction) {
    std::vector<std::vector<std::byte>> inputs(static_cast<std::size_t>(network_.size)), outputs = inputs;
    const auto reduce_all = [&](const std::vector<std::uint64_t>& buckets) {
      return timed_ns(group_.groups(), [&](int rank, const WorldOptions& options) {
        std::vector<CollectiveTask> tasks;
        for (const std::uint64_t elements : buckets)
          tasks.push_back(task_of(prediction, model, elements, inputs[index(rank)], outputs[index(rank)], options));
        // The engine chooses as the prediction said it would.
        Topology topology = options.topology;
        topology.set_speeds(group_.world(0).parts().in_use());
        CHECK(choose_again(tasks.front().call, network_.size, topology, options.limits, options.placement) == prediction.algorithm);
        return tasks;
      });
    };
    const std::vector<std::uint64_t> buckets = buckets_of(model, prediction);
    // The memory is taken once, since it may not move while it is borrowed.
    for (auto* memory : {&inputs, &outputs})
      for (auto& own : *memory) own.resize(model.parameters * sizeof(float) * 2);
    // The first one tells the ranks that all have called, as the steps before it would.
    reduce_all({buckets.front()});
    const double reduction = reduce_all(buckets);
    if (!prediction.sharded) return reduction;
    return reduction + timed_ns(group_.groups(), [&](int rank, const WorldOptions& options) {
             std::vector<CollectiveTask> tasks;
             tasks.push_back(gather_of(model, model.parameters, inputs[index(rank)], outputs[index(rank)], options));
             return tasks;
           });
  }

 private:
  using MakeTasks = std::function<std::vector<CollectiveTask>(int rank, const WorldOptions& options)>;

  static GroupSetup setup_of(const TestNetwork& network) {
    GroupSetup setup;
    setup.size = network.size;
    setup.seed = 1;
    setup.machines = network.machines;

    setup.paths = PathOptions::calm();
    // One link alone fills a port only with buffers that are large beside what is on the way.
    setup.paths.send_buffer_bytes = setup.paths.receive_buffer_bytes = {256 << 10, 256 << 10};
    const bool measures = network.setting == AlgorithmSetting::measured_parts;
    setup.world.placement.parts = measures ? PartsPolicy::measured : PartsPolicy::passive;
    if (network.setting == AlgorithmSetting::own_machines) setup.world.placement.policy = PlacementPolicy::ring;
    if (network.setting == AlgorithmSetting::rank_order) setup.world.placement.order = ReduceOrder::rank;
    return setup;
  }

  /// The elements of each bucket, as the averager divides one large tensor.
  static std::vector<std::uint64_t> buckets_of(const StepModel& model, const Prediction& prediction) {
    std::uint64_t most = model.parameters;
    if (prediction.wire && prediction.wire->blocks()) {
      const WireFormat format{DType::f32, prediction.wire->blocks()};
      most = static_cast<std::uint64_t>(kMostBlockBytes) / format.bytes(format.granule()) * format.granule();
    }
    std::vector<std::uint64_t> buckets(model.parameters / most, most);
    if (model.parameters % most > 0) buckets.push_back(model.parameters % most);
    return buckets;
  }

  /// The even parts of so many elements or blocks.
  static std::vector<std::int64_t> counts_of(std::uint64_t units, int size) {
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < size; ++rank) counts.push_back(static_cast<std::int64_t>(rows_of(units, size, rank).count()));
    return counts;
  }

  /// An average or a reduction to shards.
  static CollectiveTask task_of(const Prediction& prediction, const StepModel& model, std::uint64_t elements, std::vector<std::byte>& input,
                                std::vector<std::byte>& output, const WorldOptions& options) {
    const auto blocks = prediction.wire ? prediction.wire->blocks() : std::nullopt;
    const WireFormat format{blocks || !prediction.wire ? model.dtype : prediction.wire->dtype(), blocks};
    const auto counts = counts_of(format.units(elements), options.size);
    const std::size_t own = static_cast<std::size_t>(counts[index(options.rank)]) * format.granule();
    const TensorView values(input.data(), format.dtype, elements), part(output.data(), format.dtype, own);
    if (blocks) {
      const Bytes packed(input.data(), format.bytes(elements));
      return prediction.sharded ? make_reduce_scatter_blocks(*blocks, packed, part, counts, options)
                                : make_all_reduce_blocks(*blocks, packed, nullptr, options);
    }
    return prediction.sharded ? make_mean_scatter_v(values, part, counts, options).value() : make_all_mean(values, values, options).value();
  }

  static CollectiveTask gather_of(const StepModel& model, std::uint64_t elements, std::vector<std::byte>& whole,
                                  std::vector<std::byte>& own, const WorldOptions& options) {
    const auto counts = counts_of(elements, options.size);
    const TensorView part(own.data(), model.dtype, Shape{counts[index(options.rank)]});
    return make_all_gather_v(part, TensorView(whole.data(), model.dtype, elements), counts, options).value();
  }

  double timed_ns(const std::vector<GroupEngine*>& members, const MakeTasks& make) {
    const Instant start = group_.sim().now();
    for (int rank = 0; rank < network_.size; ++rank) {
      GroupEngine* const own = members[index(rank)];
      if (own == nullptr) continue;
      for (CollectiveTask& task : make(rank, own->options())) group_.start_in(*own, rank, 0, std::move(task));
    }
    REQUIRE(group_.run_until_done());
    return static_cast<double>((group_.sim().now() - start).nanoseconds);
  }

  MeasuredLink measure(int one, int other) {
    constexpr std::size_t kCount = 1 << 20;
    std::vector<GroupEngine*> pair(static_cast<std::size_t>(network_.size));
    for (const int rank : {one, other}) group_.start_create(world_of(rank), rank, {one, other}, 0, pair[index(rank)]);
    REQUIRE(group_.run_until_done());
    std::vector<std::vector<float>> values(2, std::vector<float>(kCount));
    const auto memory = [&](int rank, std::size_t count) { return std::span(values[rank == one ? 0 : 1]).first(count); };
    const auto sum = [&](std::size_t count) {
      return timed_ns(pair, [&](int rank, const WorldOptions& options) -> std::vector<CollectiveTask> {
        const auto own = memory(rank, count);
        return {make_all_reduce(ReduceOp::sum, own, own, 1, options).value()};
      });
    };
    const auto broadcast = [&](int root) {
      return timed_ns(pair, [&](int rank, const WorldOptions& options) -> std::vector<CollectiveTask> {
        return {make_broadcast(memory(rank, kCount), root, options).value()};
      });
    };
    constexpr double kBytes = kCount * sizeof(float);
    sum(1);
    const double exchange = sum(1);
    return {one,
            other,
            exchange,
            (broadcast(0) - exchange) / kBytes,
            (broadcast(1) - exchange) / kBytes,
            (sum(kCount) - 2 * exchange) / kBytes};
  }

  GroupEngine& world_of(int rank) { return group_.world(rank).group(); }

  TestNetwork network_;
  SimGroup group_;
};

void check_prediction(const TestNetwork& network, const StepModel& model, const WireChoice& wire, bool sharded = false) {
  static Cases cases;
  if (!cases.has_next()) return;
  TestRanks ranks(network);
  const RankNetwork measured = ranks.measured_network();
  ranks.notice(speeds_of(measured));
  const std::vector<Prediction> all = predict(model, {wire}, measured);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Prediction& one) { return one.setting == network.setting && one.sharded == sharded; });
  CAPTURE(network.size, network.slow, network.times, name_of(network.setting), name_of(wire, model), model.parameters, sharded);
  REQUIRE(found != all.end());
  CAPTURE(ringlet::name_of(found->algorithm));
  CHECK(found->nanoseconds == Approx(ranks.step_ns(model, *found)).epsilon(0.2));
}

}  // namespace

TEST_CASE("steps take what is predicted from measured links, by every wire") {
  for (const int size : {2, 3, 4, 8}) {
    for (const WireChoice& wire : usual_wires(DType::f32)) check_prediction({size}, {3'000'000}, wire);
    check_prediction({size}, {3'000'000}, DType::f16);
  }
}

TEST_CASE("steps with a slow rank take what is predicted from measured links, by even parts and by parts that follow the speed") {
  for (const int size : {3, 4}) {
    for (const std::uint64_t times : {2, 4, 10}) {
      for (const WireChoice& wire : {WireChoice{}, WireChoice{Wire::int8()}}) {
        check_prediction({size, 1, times}, {2'000'000}, wire);
        // Blocks need no setting for that.
        if (!wire) check_prediction({size, 1, times, AlgorithmSetting::measured_parts}, {2'000'000}, wire);
      }
    }
  }
}

TEST_CASE("FSDP takes what is predicted from measured links, by every wire of its gradients") {
  for (const WireChoice& wire : usual_wires(DType::f32)) {
    for (const int size : {2, 3, 4, 8}) check_prediction({size}, {2'400'000}, wire, true);
    check_prediction({3, 2, 4}, {2'400'000}, wire, true);
  }
}

TEST_CASE("additions in rank order and small models take what is predicted from measured links") {
  check_prediction({4, -1, 1, AlgorithmSetting::rank_order}, {3'000'000}, std::nullopt);
  for (const int size : {2, 3, 4, 8}) check_prediction({size}, {50'000}, std::nullopt);
}

TEST_CASE("steps of ranks that share machines take what is predicted from measured links") {
  using enum AlgorithmSetting;
  for (const std::vector<int>& machines : {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 0, 0, 1, 1, 2}}) {
    const int size = static_cast<int>(machines.size());
    for (const AlgorithmSetting setting : {none, own_machines})
      for (const std::uint64_t parameters : {50'000, 2'000'000})
        check_prediction({size, -1, 1, setting, machines}, {parameters}, std::nullopt);
    check_prediction({size, -1, 1, none, machines}, {2'000'000}, Wire::int8());
    for (const WireChoice& wire : {WireChoice{}, WireChoice{Wire::int8()}})
      for (const std::uint64_t parameters : {60'000, 2'400'000}) check_prediction({size, -1, 1, none, machines}, {parameters}, wire, true);
  }
}

TEST_CASE("measured links show which rank is slow, and how fast the others are") {
  TestRanks ranks({4, 2, 4});
  const std::vector<MeasuredLink> links = ranks.measure();
  const RankNetwork network = network_of(4, {}, links, {});
  for (int rank = 0; rank < 4; ++rank) {
    const PortCost& port = network.ports[index(rank)];
    for (const double cost : {port.per_byte_out, port.per_byte_in}) CHECK(cost == Approx(rank == 2 ? 32 : 8).epsilon(0.1));
  }
  CHECK(speeds_of(network) == std::vector<std::uint32_t>{kFullSpeed, kFullSpeed, kFullSpeed / 4, kFullSpeed});
  CHECK(slower_than_ports(links, network.ports, 1.5).empty());
}
