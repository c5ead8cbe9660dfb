// Tests of the phases of a meeting in which a rank listens and dials, each phase by itself.
#include <catch2/catch.hpp>
#include <map>

#include "core/rendezvous/listeners.hpp"
#include "core/rendezvous/rank_dials.hpp"
#include "tests/core/phase_stage.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

// --- listen ---

TEST_CASE("a rank listens where it is told to; rank 0 at the coordinator's address, others at all addresses of that family") {
  MeetingOptions options;
  options.coordinator = {"10.0.0.1", 5000};
  CHECK(addresses_to_listen_at(options, 0) == std::vector<Address>{{"10.0.0.1", 5000}});
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"0.0.0.0", 0}});
  options.listen_at = {"10.0.0.7", 0};
  CHECK(addresses_to_listen_at(options, 0) == std::vector<Address>{{"10.0.0.7", 5000}});
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"10.0.0.7", 0}});
  options.listen_at.reset();
  options.coordinator = {"fd00::1", 5000};
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"::", 0}});
  options.coordinator = {"::1", 5000};
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"::1", 0}});
  options.coordinator = {"127.0.1.1", 5000};
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"127.0.1.1", 0}});
  options.coordinator = {"localhost", 5000};
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"127.0.0.1", 0}});
  options.coordinator.reset();
  options.roster = {{{"a", 1}}, {{"b", 2}, {"c", 3}}};
  CHECK(addresses_to_listen_at(options, 1) == std::vector<Address>{{"b", 2}, {"c", 3}});
}

TEST_CASE("listeners open further hosts as far as that works, and know at which endpoints they are heard") {
  SimWorld sim(1);
  SimNode& node = sim.add_node();
  sim.add_address(node, "10.1.0.1");
  Listeners listeners(node.network());
  const std::vector<Address> addresses{{node.host(), 0}};
  const std::vector<std::string> hosts{"10.1.0.1", "10.9.9.9"};
  REQUIRE(listeners.open(addresses, hosts, {}, 0, [](std::unique_ptr<Link>) {}).ok());
  const std::uint16_t port = listeners.address().port;
  CHECK(port != 0);
  using Kind = wire::Endpoint::Kind;
  const std::vector<wire::Endpoint> endpoints{{node.host(), 0, "wlan0", Kind::wireless},
                                              {"10.1.0.1", 0, "eth0", Kind::wired},
                                              {"10.9.9.9", 0, "eth1", Kind::wired},
                                              {"203.0.113.7", 77, "", Kind::unknown}};
  const auto reachable = listeners.reachable(endpoints);
  REQUIRE(reachable.size() == 3);
  CHECK(reachable[0] == wire::Endpoint{"10.1.0.1", port, "eth0", Kind::wired});
  CHECK(reachable[1] == wire::Endpoint{"203.0.113.7", 77, "", Kind::unknown});
  CHECK(reachable[2] == wire::Endpoint{node.host(), port, "wlan0", Kind::wireless});

  Listeners second(node.network());
  CHECK_FALSE(second.open(std::vector<Address>{{node.host(), port}}, {}, {}, 0, [](std::unique_ptr<Link>) {}).ok());
}

// --- dial ---

TEST_CASE("ranks of one machine take different ports of those that a firewall lets in, and say so where none is left") {
  SimWorld world(1);
  SimNode& node = world.add_node();
  const std::vector<Address> anywhere{{node.host(), 0}};
  std::vector<std::unique_ptr<Listeners>> ranks;
  const auto open = [&](int preferred) {
    return ranks.emplace_back(std::make_unique<Listeners>(node.network()))
        ->open(anywhere, {}, {47'175, 47'177}, preferred, [](std::unique_ptr<Link>) {});
  };
  REQUIRE(open(5).ok());
  CHECK(ranks[0]->address().port == 47'177);
  REQUIRE(open(2).ok());
  CHECK(ranks[1]->address().port == 47'175);
  REQUIRE(open(0).ok());
  CHECK(ranks[2]->address().port == 47'176);
  CHECK_THAT(open(1).text(), Contains("none of the ports 47175-47177 of RINGLET_PORTS can be used"));
  CHECK(parse_port_range("47175-47177") == PortRange{47'175, 47'177});
  CHECK(parse_port_range("80") == PortRange{80, 80});
  CHECK(parse_port_range("any") == PortRange{});
  for (const char* text : {"", "0", "5-4", "1-70000", "1-", "-1", "a", "1-2-3"}) CHECK_FALSE(parse_port_range(text));
}

TEST_CASE("of each pair one rank dials the other, and two guests both dial their relay") {
  for (int size = 2; size <= 7; ++size) {
    for (int guests = 0; guests < size; ++guests) {
      CAPTURE(size, guests);
      const int natives = size - guests;
      wire::Roster roster{1, {}};
      for (int rank = 0; rank < size; ++rank) {
        wire::Member member{static_cast<std::uint32_t>(rank), "", 0};
        if (rank < natives) member = {member.rank, "10.0.0." + std::to_string(rank + 1), 5000};
        roster.members.push_back(member);
      }
      std::map<std::pair<int, int>, int> dialled;
      for (int rank = 0; rank < size; ++rank) {
        const WorldOptions own = world_options(rank, size, guests);
        auto plan = plan_links(roster, own, {"10.0.0.1", 5000});
        REQUIRE(plan.ok());
        for (const PlannedLink& link : plan.value()) {
          ++dialled[std::minmax(rank, link.peer)];
          const int reached = link.relayed ? own.relay_of(rank, link.peer) : link.peer;
          CHECK(link.relayed == own.is_relayed(rank, link.peer));
          CHECK(link.targets.front().host == "10.0.0." + std::to_string(reached + 1));
        }
      }
      // The links with rank 0 exist already, so nobody dials them.
      for (int one = 1; one < size; ++one)
        for (int other = one + 1; other < size; ++other) CHECK(dialled[{one, other}] == (one >= natives ? 2 : 1));
      for (int one = 1; one < size; ++one) CHECK(dialled[{0, one}] == 0);
    }
  }
}

TEST_CASE("rank 0 is dialled again where it has more than the one address, and by natives alone") {
  wire::Roster roster{1, {{0, "10.0.0.1", 5000, "", {{"10.0.0.1", 5000}, {"10.1.0.1", 5000}}}, {1, "10.0.0.2", 5000}, {2, "", 0}}};
  const auto native = plan_links(roster, world_options(1, 3, 1), {"10.0.0.1", 5000});
  REQUIRE(native.value().size() == 1);
  CHECK(native.value()[0].peer == 0);
  CHECK(native.value()[0].targets.size() == 2);
  const auto guest = plan_links(roster, world_options(2, 3, 1), {"10.0.0.1", 5000});
  REQUIRE(guest.value().size() == 1);
  CHECK(guest.value()[0].peer == 1);
}

TEST_CASE("a roster that lacks a rank is refused") {
  const wire::Roster roster{1, {{0, "10.0.0.1", 5000}, {2, "10.0.0.3", 5000}, {77, "10.0.0.9", 5000}}};
  const auto plan = plan_links(roster, world_options(2, 3), {"10.0.0.1", 5000});
  CHECK(plan.status().code() == Errc::protocol_error);
  CHECK_THAT(plan.status().text(), Contains("rank 1"));
}

TEST_CASE("a dialled rank gets the first message, and the world the session") {
  Stage stage(world_options(1, 3));
  RankDials dials(stage.node.loop(), stage.dialler, stage.world, stage.links, stage.closing, {Duration::seconds(9)}, stage.count_changes());
  const bool comes_late = GENERATE(false, true);
  Stage::Other& coordinator = stage.add_other();
  if (comes_late) {
    dials.join({coordinator.node->host(), 5000}, wire::Join{settings(1), "", 4711});
    stage.pass();
    CHECK_FALSE(stage.world.has_session(0));
    CHECK_THAT(dials.complaints(), Contains(coordinator.node->host()) && Contains("refused"));
  }
  Stage::Other& other = stage.add_listener();
  if (!comes_late) dials.connect({0, false, {Stage::endpoint(other)}}, 77, "a name");
  if (comes_late) {
    coordinator.incoming = std::make_unique<IncomingLinks>(coordinator.node->loop(), *coordinator.authenticator);
    coordinator.incoming->set_on_link(
        [&](std::unique_ptr<Link> link) { coordinator.talkers.emplace_back(coordinator.node->loop()).use(std::move(link)); });
    coordinator.listener =
        std::move(coordinator.node->network().listen({coordinator.node->host(), 5000}, coordinator.incoming->acceptor())).value();
  }
  stage.pass(Duration::seconds(3));
  REQUIRE(stage.world.has_session(0));
  CHECK(dials.complaints().empty());
  CHECK_FALSE(stage.links.has(0));
  const Talker& talker = (comes_late ? coordinator : other).talkers.at(0);
  if (comes_late) {
    REQUIRE(talker.last<wire::Join>() != nullptr);
    CHECK(talker.last<wire::Join>()->port == 4711);
  } else {
    REQUIRE(talker.last<wire::Connect>() != nullptr);
    CHECK(*talker.last<wire::Connect>() == wire::Connect{settings(1), 77, "a name"});
  }
}

TEST_CASE("a rank with another token is given up after some attempts, and dials that were stopped do nothing more") {
  Stage stage(world_options(1, 3));
  RankDials dials(stage.node.loop(), stage.dialler, stage.world, stage.links, stage.closing, {Duration::seconds(9)}, stage.count_changes());
  Stage::Other& other = stage.add_listener("another token");
  dials.connect({0, false, {Stage::endpoint(other)}}, 77, "");
  const bool stopped = GENERATE(false, true);
  if (stopped) dials.stop();
  stage.pass(Duration::seconds(3));
  CHECK(stage.world.failure().code() == (stopped ? Errc::ok : Errc::mismatch));
  if (!stopped) CHECK_THAT(stage.world.failure().text(), Contains("rank 1 cannot join") && Contains("tokens differ"));
  // A dial that was under way goes on, but its end is not reported.
  CHECK(other.incoming->refusals().count == (stopped ? 1u : 3u));
}

TEST_CASE("a race is won by an address of the right rank, and the session that was there is kept until its peer ends it") {
  Stage stage(world_options(1, 3));
  RankDials dials(stage.node.loop(), stage.dialler, stage.world, stage.links, stage.closing, {Duration::seconds(9)}, stage.count_changes());
  Stage::Other& first = stage.add_listener();
  dials.join({first.node->host(), 5000}, wire::Join{settings(1), "", 4711});
  stage.pass();
  REQUIRE(stage.world.has_session(0));
  Stage::Other &right = stage.add_listener(), &wrong = stage.add_listener();
  dials.connect({0, false, {Stage::endpoint(wrong), Stage::endpoint(right)}}, 77, "");
  stage.pass(Duration::milliseconds(50));
  REQUIRE(right.talkers.size() == 1);
  REQUIRE(right.talkers[0].last<wire::Propose>() != nullptr);
  CHECK(*right.talkers[0].last<wire::Propose>() == wire::Propose{settings(1), 77, 0});
  wrong.talkers.at(0).send(wire::Welcome{2});
  right.talkers[0].send(wire::Welcome{0});
  stage.pass();
  REQUIRE(right.talkers[0].last<wire::Nominate>() != nullptr);
  CHECK_FALSE(stage.links.has(0));
  right.talkers[0].send(wire::Welcome{0});
  stage.pass(Duration::seconds(5));
  REQUIRE(right.talkers[0].last<wire::Welcome>() != nullptr);
  CHECK(right.talkers[0].last<wire::Welcome>()->rank == 1);
  CHECK(stage.links.has(0));
  CHECK(stage.changes == 1);
  CHECK(stage.world.link_with(0).peer_name == right.node->host() + ":5000");
  CHECK(stage.world.link_with(0).path.tried == 2);
  CHECK_FALSE(first.talkers[0].ended);
}
