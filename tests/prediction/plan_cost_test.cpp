#include "tools/prediction/plan_cost.hpp"

#include <catch2/catch.hpp>
#include <memory>

#include "core/engine/requests.hpp"
#include "core/engine/world.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;

namespace {

constexpr double kByte = 8, kLatency = 10'000;  // so short that the simulated network's buffers do not limit its links

std::vector<PortCost> equal_ports(int size, double per_frame = 0) {
  return std::vector<PortCost>(static_cast<std::size_t>(size), PortCost{kLatency, kByte, kByte, per_frame});
}

Call sum_call(Algorithm algorithm, std::size_t bytes) {
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.dtype = DType::f32;
  call.algorithm = algorithm;
  call.rows = bytes / sizeof(float);
  return call;
}

double cost_ns(Algorithm algorithm, std::size_t bytes, const std::vector<PortCost>& ports) {
  return cost_of(sum_call(algorithm, bytes), {}, ports).nanoseconds;
}

class IgnoringSessionOwner final : public SessionOwner {
 public:
  PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
  void on_session_failed(Session&, const Status&) override {}
  void on_session_ended(Session&) override {}
};

/// A sum by the engines themselves on the simulated network, in virtual nanoseconds.
double engines_ns(Algorithm algorithm, int size, std::size_t bytes) {
  SimWorld sim(std::uint64_t{1});
  IgnoringSessionOwner owner;
  std::vector<std::unique_ptr<World>> worlds;
  WorldOptions options;
  options.size = size;
  options.kernels = simd::find("");
  // All sizes by the one algorithm.
  options.limits.exchange_bytes = algorithm == Algorithm::exchange ? SIZE_MAX : 0;
  options.limits.direct_bytes = algorithm == Algorithm::ring ? 0 : SIZE_MAX;
  for (options.rank = 0; options.rank < size; ++options.rank) {
    sim.limit_port(sim.add_node(), static_cast<std::uint64_t>(1e9 / kByte));
    worlds.push_back(std::make_unique<World>(sim.node(static_cast<std::size_t>(options.rank)).loop(), options));
  }
  std::uint16_t port = 5000;
  for (std::size_t one = 0; one < worlds.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      SimNode &dialler = sim.node(one), &listener = sim.node(other);
      PathOptions path = PathOptions::calm();
      path.latency = {Duration{static_cast<std::int64_t>(kLatency)}, Duration{static_cast<std::int64_t>(kLatency)}};
      path.bytes_per_second = {100'000'000'000, 100'000'000'000};
      sim.path(dialler, listener) = sim.path(listener, dialler) = path;
      const Address address{listener.host(), port++};
      std::unique_ptr<Link> dialled, accepted;
      auto opened = listener.network().listen(address, [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
      dialler.network().dial(address, Duration::seconds(1), [&](Result<std::unique_ptr<Link>> link) { dialled = std::move(link).value(); });
      sim.run_until([&] { return dialled && accepted; });
      worlds[one]->adopt(std::make_unique<Session>(std::move(dialled), dialler.loop(), owner, SessionOptions{}), static_cast<int>(other));
      worlds[other]->adopt(std::make_unique<Session>(std::move(accepted), listener.loop(), owner, SessionOptions{}), static_cast<int>(one));
    }
  }
  std::vector<std::vector<float>> values(worlds.size(), std::vector<float>(bytes / sizeof(float), 1.0F));
  // The first one tells the ranks that all have called; the second one is measured.
  double took = 0;
  for (int turn = 0; turn < 2; ++turn) {
    int done = 0;
    const Instant start = sim.now();
    for (std::size_t rank = 0; rank < worlds.size(); ++rank) {
      auto task = make_all_reduce(ReduceOp::sum, values[rank], values[rank], 1, worlds[rank]->group().options());
      REQUIRE(task.value().call.algorithm == algorithm);
      task.value().completion = [&done](const Status& status) { done += status.ok() ? 1 : 0; };
      worlds[rank]->group().start(0, std::move(task).value());
    }
    sim.run_until([&] { return done == size; }, {.events = 1'000'000'000});
    REQUIRE(done == size);
    took = static_cast<double>((sim.now() - start).nanoseconds);
  }
  worlds.clear();
  return took;
}

}  // namespace

TEST_CASE("one exchange of two ranks takes a frame's way") {
  const PlanCost cost = cost_of(sum_call(Algorithm::exchange, 1000), {}, equal_ports(2, 500));
  CHECK(cost.nanoseconds == kLatency + 500 + 1000 * kByte);
  CHECK(cost.frames == 2);
  CHECK(cost.most_bytes_out == 1000);
}

TEST_CASE("doubling takes the logarithm of the ranks in frames' ways") {
  CHECK(cost_ns(Algorithm::doubling, 64, equal_ports(2)) == kLatency + 64 * kByte);
  // The second round carries what two ranks have, the third what four have.
  CHECK(cost_ns(Algorithm::doubling, 64, equal_ports(8)) == 3 * kLatency + (1 + 2 + 4) * 64 * kByte);
}

TEST_CASE("large sums send each byte twice but for the own part") {
  const std::size_t bytes = 8 << 20;
  for (const int size : {2, 3, 4, 8, 16}) {
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
      CAPTURE(size, name_of(algorithm));
      const PlanCost cost = cost_of(sum_call(algorithm, bytes), {}, equal_ports(size));
      const double least = 2.0 * (size - 1) / size * static_cast<double>(bytes);
      CHECK(static_cast<double>(cost.most_bytes_out) == Approx(least).epsilon(0.001));
      CHECK(cost.nanoseconds >= least * kByte);
      CHECK(cost.nanoseconds <= least * kByte * 1.15 + 2.0 * size * kLatency);
    }
  }
}

TEST_CASE("a slow port holds up the others by what it has to carry") {
  const std::size_t bytes = 1 << 20;
  std::vector<PortCost> ports = equal_ports(4);
  ports[2].per_byte_in = ports[2].per_byte_out = 10 * kByte;
  const double even = cost_ns(Algorithm::direct, bytes, ports), carried = 1.5 * static_cast<double>(bytes) * 10 * kByte;
  CHECK(even >= carried);
  CHECK(even <= 1.1 * carried);
}

TEST_CASE("the cost of plans is what the engines take on the simulated network") {
  test::Cases cases;
  for (const int size : {2, 3, 4, 8}) {
    for (const std::size_t bytes : {std::size_t{4 << 10}, std::size_t{256 << 10}, std::size_t{4 << 20}}) {
      for (const Algorithm algorithm : {Algorithm::exchange, Algorithm::direct, Algorithm::ring}) {
        if (algorithm == Algorithm::exchange && (bytes > (4 << 10) || size > 3)) continue;  // engines of four and more take doubling
        if (!cases.has_next()) continue;
        CAPTURE(size, bytes, name_of(algorithm));
        const double engines = engines_ns(algorithm, size, bytes);
        CHECK(cost_ns(algorithm, bytes, equal_ports(size)) == Approx(engines).epsilon(0.15));
      }
    }
  }
}

TEST_CASE("a thousand ranks") {
  const int size = test::takes_part_of_seeds() ? 64 : 1024;
  const std::size_t bytes = 4 << 20;
  const double least = 2.0 * static_cast<double>(bytes) * kByte;
  // Along the ring each step takes a latency; with owners there are two of them.
  CHECK(cost_ns(Algorithm::ring, bytes, equal_ports(size)) == Approx(least + 2 * (size - 1) * kLatency).epsilon(0.1));
  CHECK(cost_ns(Algorithm::direct, bytes, equal_ports(size)) == Approx(least + 2 * kLatency).epsilon(0.1));
}
