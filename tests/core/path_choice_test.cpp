#include "core/rendezvous/path_choice.hpp"

#include <catch2/catch.hpp>

#include "core/rendezvous/endpoints.hpp"

using namespace ringlet;
using InterfaceKind = wire::Endpoint::Kind;

namespace {

constexpr std::uint64_t kGigabitBytePs = 8000;

wire::Path path(InterfaceKind kind, std::uint64_t round_trip_us, double gigabits, std::uint32_t speed_mbps = 0) {
  wire::Path made;
  made.kind = kind;
  made.speed_mbps = speed_mbps;
  made.round_trip_ns = round_trip_us * 1000;
  made.byte_ps = static_cast<std::uint64_t>(static_cast<double>(kGigabitBytePs) / gigabits);
  return made;
}

}  // namespace

TEST_CASE("the faster path is taken, the wired one where they are near") {
  struct Row {
    const char* name;
    std::vector<wire::Path> paths;
    std::size_t chosen;
  };
  const std::vector<Row> rows{
      {"one alone", {path(InterfaceKind::unknown, 100, 1)}, 0},
      {"bandwidth", {path(InterfaceKind::wired, 100, 0.1), path(InterfaceKind::wired, 100, 1)}, 1},
      {"a fast wireless before a slow cable", {path(InterfaceKind::wired, 100, 0.1), path(InterfaceKind::wireless, 1000, 0.8)}, 1},
      {"near: wired", {path(InterfaceKind::wireless, 300, 1.1), path(InterfaceKind::wired, 300, 1)}, 1},
      {"near: wired before what is not known", {path(InterfaceKind::unknown, 100, 1.2), path(InterfaceKind::wired, 100, 1)}, 1},
      {"near: what is not known before wireless", {path(InterfaceKind::wireless, 100, 1.2), path(InterfaceKind::unknown, 100, 1)}, 1},
      {"near: nominal speed", {path(InterfaceKind::wired, 100, 2, 1000), path(InterfaceKind::wired, 100, 2.1, 2500)}, 1},
      {"near and alike: the first", {path(InterfaceKind::wired, 100, 1), path(InterfaceKind::wired, 90, 1.1)}, 0},
      {"not near, whatever its kind", {path(InterfaceKind::wireless, 100, 2), path(InterfaceKind::wired, 100, 1)}, 0},
      {"a long way round", {path(InterfaceKind::wired, 80'000, 10), path(InterfaceKind::wired, 200, 1)}, 1},
      {"near is counted from the fastest alone",
       {path(InterfaceKind::wired, 100, 0.5), path(InterfaceKind::wireless, 100, 0.7), path(InterfaceKind::wireless, 100, 1)},
       1},
      {"nothing came back in time", {path(InterfaceKind::wired, 100, 0.0003), path(InterfaceKind::wireless, 5000, 0.05)}, 1},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(choose_path(row.paths) == row.chosen);
  }
}

TEST_CASE("a path is as good as the worse of its two interfaces") {
  const wire::Endpoint wired{"10.0.0.1", 1, "eth0", InterfaceKind::wired, 2500},
      wireless{"10.0.0.2", 1, "wlan0", InterfaceKind::wireless, 0}, unknown{};
  CHECK(path_between(wired, wireless).kind == InterfaceKind::wireless);
  CHECK(path_between(wireless, wired).kind == InterfaceKind::wireless);
  CHECK(path_between(wired, unknown).kind == InterfaceKind::unknown);
  CHECK(path_between(wired, wired).kind == InterfaceKind::wired);
  CHECK(path_between(wired, wireless).speed_mbps == 2500);
  CHECK(path_between(wired, wireless).dialler_interface == "eth0");
  CHECK(path_between(wired, wireless).acceptor_interface == "wlan0");
}

TEST_CASE("a peer's targets are its offers and where it was seen, each once") {
  wire::Member member{3, "10.0.0.1", 5000, "", {{"10.0.0.2", 5000}, {"10.0.0.1", 5000}, {"10.0.0.3", 0}}};
  const auto targets = targets_of(member);
  REQUIRE(targets.size() == 2);
  CHECK(targets[0].host == "10.0.0.2");
  CHECK(targets[1].host == "10.0.0.1");
  CHECK(is_worth_a_race(member));
  CHECK_FALSE(is_worth_a_race({0, "10.0.0.1", 5000, "", {{"10.0.0.1", 5000}}}));
  CHECK_FALSE(is_worth_a_race({0, "10.0.0.1", 5000, "", {}}));
  CHECK(is_worth_a_race({0, "10.0.0.1", 5000, "", {{"10.0.0.2", 5000}}}));
}

TEST_CASE("offers are ordered by how likely they are to be fast") {
  const auto ordered = likeliest_first({{"169.254.1.1", 1, "usb0", InterfaceKind::wired},
                                        {"10.0.0.1", 1, "wlan0", InterfaceKind::wireless, 2400},
                                        {"10.0.0.2", 1, "wg0"},
                                        {"10.0.0.3", 1, "eth0", InterfaceKind::wired, 1000},
                                        {"10.0.0.4", 1, "eth1", InterfaceKind::wired, 10'000}});
  std::string hosts;
  for (const auto& endpoint : ordered) hosts += endpoint.host + " ";
  CHECK(hosts == "10.0.0.4 10.0.0.3 10.0.0.2 10.0.0.1 169.254.1.1 ");
  CHECK(likeliest_first(std::vector<wire::Endpoint>(30)).size() == wire::kMaxEndpoints);
}

TEST_CASE("what listens at all addresses is heard at each of its family") {
  CHECK(is_heard_at("10.0.0.1", "0.0.0.0"));
  CHECK(is_heard_at("10.0.0.1", "10.0.0.1"));
  CHECK_FALSE(is_heard_at("10.0.0.1", "10.0.0.2"));
  CHECK_FALSE(is_heard_at("fd00::1", "0.0.0.0"));
  CHECK(is_heard_at("fd00::1", "::"));
  CHECK(is_dialable({"fd00::1", 80}));
  CHECK_FALSE(is_dialable({"10.0.0.1", 0}));
  CHECK_FALSE(is_dialable({"no host", 80}));
}
