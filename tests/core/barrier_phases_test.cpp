// Tests of the last phase of a meeting, whose other ranks say whatever they like of their doors.
#include <catch2/catch.hpp>

#include "core/rendezvous/ready_barrier.hpp"
#include "tests/core/phase_stage.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

const Address kOwnDoor{"10.0.0.1", 7000};

WorldOptions elastic_options(int rank, int size) {
  WorldOptions options = world_options(rank, size);
  options.elastic = true;
  return options;
}

/// A rank in its barrier. The others are linked with it in the order of their ranks.
struct Entered {
  explicit Entered(const WorldOptions& options) : stage(options) {
    stage.world.set_control_handler([this](int from, const wire::ControlMessage& message) { CHECK(barrier.on_control(from, message)); });
    stage.listen([this](std::unique_ptr<Link> link) {
      if (next == stage.world.options().rank) ++next;
      stage.world.adopt(std::move(link), next++);
    });
  }

  Stage stage;
  int next = 0;
  bool passed = false;
  ReadyBarrier barrier{stage.node.loop(), stage.world, kOwnDoor, [this] { passed = true; }};
};

std::vector<wire::Endpoint> impossible_doors() {
  return {{},
          {"10.0.0.2", 0},
          {"10.0.0.2", 65'536},
          {"", 7001},
          {"a host", 7001},
          {"10.0.0.2:7001", 7001},
          {"fe80::1%" + std::string(100'000, 'x'), 7001},
          {std::string(254, 'x'), 7001}};
}

}  // namespace

TEST_CASE("rank 0 announces all doors, without those that are none and whatever else was said of them") {
  for (const wire::Endpoint& impossible : impossible_doors()) {
    CAPTURE(impossible.host.substr(0, 20), impossible.port);
    Entered entered(elastic_options(0, 4));
    entered.barrier.enter();
    const wire::Endpoint wordy{"10.0.0.2", 7001, std::string(100'000, 'x'), wire::Endpoint::Kind::wired, 1000};
    Talker& first = entered.stage.dial(wire::Ready{{}, wordy});
    Talker& second = entered.stage.dial(wire::Ready{{}, impossible});
    CHECK_FALSE(entered.passed);
    Talker& third = entered.stage.dial(wire::Ready{{}, {"fe80::2%eth0", 7003}});
    CHECK(entered.passed);
    for (const Talker* talker : {&first, &second, &third}) {
      REQUIRE(talker->last<wire::Begin>() != nullptr);
      CHECK(talker->last<wire::Begin>()->doors ==
            std::vector<wire::Endpoint>{{"10.0.0.1", 7000}, {"10.0.0.2", 7001}, {}, {"fe80::2%eth0", 7003}});
    }
    CHECK(entered.stage.world.door(0) == kOwnDoor);
    CHECK(entered.stage.world.door(1) == Address{"10.0.0.2", 7001});
    CHECK(entered.stage.world.door(2) == Address{});
    CHECK(entered.stage.world.door(3) == Address{"fe80::2%eth0", 7003});
  }
}

TEST_CASE("a rank tells its door, and believes of what rank 0 announces what may be doors of its world") {
  for (const wire::Endpoint& impossible : impossible_doors()) {
    CAPTURE(impossible.host.substr(0, 20), impossible.port);
    Entered entered(elastic_options(1, 3));
    Talker& first = entered.stage.dial(wire::LinkProbe{});
    entered.barrier.enter();
    entered.stage.pass();
    REQUIRE(first.last<wire::Ready>() != nullptr);
    CHECK(first.last<wire::Ready>()->door == wire::Endpoint{"10.0.0.1", 7000});
    wire::Begin begin;
    begin.doors = {impossible, {"10.0.0.1", 7000}};
    const bool has_too_many = impossible.port == 0;
    if (has_too_many) begin.doors.resize(5, {"10.0.0.3", 7002});
    first.send(begin);
    entered.stage.pass();
    CHECK(entered.passed);
    CHECK(entered.stage.world.failure().ok());
    CHECK(entered.stage.world.door(0) == Address{});
    CHECK(entered.stage.world.door(1) == kOwnDoor);
    CHECK(entered.stage.world.door(2) == (has_too_many ? Address{"10.0.0.3", 7002} : Address{}));
  }
}

TEST_CASE("where the world is not elastic nobody is told of doors") {
  Entered entered(world_options(0, 2));
  entered.barrier.enter();
  Talker& other = entered.stage.dial(wire::Ready{{}, {"10.0.0.2", 7001}});
  REQUIRE(other.last<wire::Begin>() != nullptr);
  CHECK(other.last<wire::Begin>()->doors.empty());
  CHECK(entered.stage.world.door(1) == Address{});
}

TEST_CASE("all ranks have the number of rank 0's job") {
  WorldOptions options = world_options(0, 2);
  options.job = 0x123456789abcdef0;
  Entered first(options);
  first.barrier.enter();
  Talker& second = first.stage.dial(wire::Ready{});
  REQUIRE(second.last<wire::Begin>() != nullptr);
  CHECK(second.last<wire::Begin>()->job == options.job);
  CHECK(first.stage.world.options().job == options.job);

  WorldOptions others = world_options(1, 2);
  others.job = 7;
  Entered other(others);
  Talker& zero = other.stage.dial(wire::LinkProbe{});
  other.barrier.enter();
  other.stage.pass();
  wire::Begin begin = placement_of({}, options);
  begin.job = options.job;
  zero.send(begin);
  other.stage.pass();
  CHECK(other.passed);
  CHECK(other.stage.world.options().job == options.job);
}

TEST_CASE("rank 0 announces who shares a machine, where all say it and nobody says what cannot be") {
  using Numbers = std::vector<std::uint32_t>;
  const std::vector<std::pair<Numbers, Numbers>> said_and_announced{{{1, 3, 3}, {0, 0, 2, 2}}, {{2, 2, 3}, {0, 1, 1, 1}},
                                                                    {{2, 3, 4}, {0, 1, 2, 3}}, {{1, 0, 1}, {}},
                                                                    {{1, 4, 1}, {}},           {{1, 1, UINT32_MAX}, {}}};
  for (const auto& [said, announced] : said_and_announced) {
    CAPTURE(said);
    Entered entered(elastic_options(0, 4));
    entered.barrier.enter();
    Talker* last = nullptr;
    for (const std::uint32_t machine : said) last = &entered.stage.dial(wire::Ready{{}, {}, machine});
    CHECK(entered.passed);
    REQUIRE(last->last<wire::Begin>() != nullptr);
    CHECK(last->last<wire::Begin>()->machines == announced);
    CHECK(entered.stage.world.options().machines == std::vector<int>(announced.begin(), announced.end()));
  }
}
