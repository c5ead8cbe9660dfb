// Each phase of a meeting by itself.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "core/engine/payload_sink.hpp"
#include "core/engine/send_control.hpp"
#include "core/rendezvous/admission.hpp"
#include "core/rendezvous/coordinator.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "core/rendezvous/link_measurement.hpp"
#include "core/rendezvous/listeners.hpp"
#include "core/rendezvous/rank_dials.hpp"
#include "core/rendezvous/rank_settings.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/test_authenticator.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

const std::string kPhaseToken = "a token for phases";

WorldOptions world_options(int rank, int size, int guests = 0) {
  WorldOptions options;
  options.rank = rank;
  options.size = size;
  options.guests = guests;
  options.kernels = simd::find("");
  return options;
}

wire::RankSettings settings(std::uint32_t rank, std::uint32_t size = 3, std::uint32_t guests = 0) {
  return settings_of(world_options(static_cast<int>(rank), static_cast<int>(size), static_cast<int>(guests)));
}

/// The other end of a session: remembers the control messages that come.
class Talker final : private SessionOwner {
 public:
  explicit Talker(EventLoop& loop) : loop_(loop), sink_(*this) {}
  void use(std::unique_ptr<Link> link) {
    session_ = std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), SessionOptions{});
  }
  bool talks() const { return session_ != nullptr; }
  void send(const wire::ControlMessage& message) { send_control(*session_, message); }

  std::vector<wire::ControlMessage> heard;
  bool ended = false;

  template <class Message>
  const Message* last() const {
    return heard.empty() ? nullptr : std::get_if<Message>(&heard.back());
  }

 private:
  class Sink final : public GatheringSink {
   public:
    explicit Sink(Talker& talker) : talker_(talker) {}
    void frame_ended() override { talker_.heard.push_back(*wire::decode_control(gathered())); }

   private:
    Talker& talker_;
  };

  PayloadSink* on_frame(Session&, const FrameHeader&) override {
    sink_.begin();
    return &sink_;
  }
  void on_session_failed(Session&, const Status&) override { ended = true; }
  void on_session_ended(Session&) override { ended = true; }

  EventLoop& loop_;
  Sink sink_;
  std::unique_ptr<Session> session_;
};

/// One rank's node, with what all phases need, and talkers on nodes of their own.
struct Stage {
  SimWorld sim{11};
  SimNode& node = sim.add_node();
  TestAuthenticator authenticator{1, kPhaseToken};
  World world;
  LinkTable links;
  ClosingSessions closing{node.loop(), {}};
  Dialler dialler{node.loop(), node.network(), authenticator};
  IncomingLinks incoming{node.loop(), authenticator};
  std::unique_ptr<Listener> listener;
  int changes = 0;

  struct Other {
    SimNode* node = nullptr;
    std::unique_ptr<TestAuthenticator> authenticator;
    std::unique_ptr<Dialler> dialler;
    std::unique_ptr<IncomingLinks> incoming;
    std::unique_ptr<Listener> listener;
    std::deque<Talker> talkers;
  };
  std::deque<Other> others;

  explicit Stage(const WorldOptions& options) : world(node.loop(), options), links(options.size, options.rank) {}

  std::function<void()> count_changes() {
    return [this] { ++changes; };
  }
  void pass(Duration time = Duration::seconds(1)) { sim.run_for(time); }
  /// Gives what dials this node to `on_link`.
  void listen(IncomingLinks::OnLink on_link) {
    incoming.set_on_link(std::move(on_link));
    listener = std::move(node.network().listen({node.host(), 5000}, incoming.acceptor())).value();
  }
  Other& add_other(const std::string& token = kPhaseToken) {
    Other& other = others.emplace_back();
    other.node = &sim.add_node();
    other.authenticator = std::make_unique<TestAuthenticator>(others.size() + 10, token);
    return other;
  }
  /// Dials this node and says `first`.
  Talker& dial(const wire::ControlMessage& first) {
    Other& other = add_other();
    other.dialler = std::make_unique<Dialler>(other.node->loop(), other.node->network(), *other.authenticator);
    Talker& talker = other.talkers.emplace_back(other.node->loop());
    other.dialler->dial({node.host(), 5000}, {}, {}, [&talker, first](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) return;
      talker.use(std::move(link).value());
      talker.send(first);
    });
    pass();
    return talker;
  }
  /// Listens at a node of its own and talks with all who dial it.
  Other& add_listener(const std::string& token = kPhaseToken) {
    Other& other = add_other(token);
    other.incoming = std::make_unique<IncomingLinks>(other.node->loop(), *other.authenticator);
    other.incoming->set_on_link(
        [&other](std::unique_ptr<Link> link) { other.talkers.emplace_back(other.node->loop()).use(std::move(link)); });
    other.listener = std::move(other.node->network().listen({other.node->host(), 5000}, other.incoming->acceptor())).value();
    return other;
  }
  static wire::Endpoint endpoint(const Other& other) { return {other.node->host(), 5000}; }
};

}  // namespace

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
  options.coordinator = {"127.0.0.1", 5000};
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
  REQUIRE(listeners.open(addresses, hosts, [](std::unique_ptr<Link>) {}).ok());
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
  CHECK_FALSE(second.open(std::vector<Address>{{node.host(), port}}, {}, [](std::unique_ptr<Link>) {}).ok());
}

// --- dial ---

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
      // Links with rank 0 are there already.
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
  // A dial that was under way goes on, and its end is not heard of.
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

// --- admit ---

TEST_CASE("settings of ranks that do not belong together are told apart") {
  const WorldOptions own = world_options(0, 3, 1);
  CHECK(check_settings(settings(1, 3, 1), own).ok());
  CHECK(check_settings(settings(1, 4, 1), own).code() == Errc::mismatch);
  CHECK_THAT(check_settings(settings(1, 3, 0), own).text(), Contains("RINGLET_GUESTS"));
  CHECK(check_settings({3, 3, 1, 0}, own).code() == Errc::invalid_argument);
  CHECK(check_settings({4'000'000'000, 3, 1, 0}, own).code() == Errc::invalid_argument);
  CHECK(check_settings({4'000'000'000, 4, 1, 0}, own).rank() == 1 << 30);
  wire::RankSettings other = settings(1, 3, 1);
  other.policy = 99;
  CHECK_THAT(check_settings(other, own).text(), Contains("number 99") && Contains("RINGLET_PLACEMENT"));
  // A guest has no policy of its own.
  other.rank = 2;
  CHECK(check_settings(other, own).ok());
}

TEST_CASE("a candidate's probes are answered, one nomination is accepted, and only then a confirmation") {
  using Kind = CandidateResponder::Reaction::Kind;
  const wire::LinkProbe probe{0, false, std::string(LinkMeasurement::kPadding, 'x')};
  const wire::Nominate nomination{wire::Path{"eth0", "eth1"}};
  CandidateResponder good(0, 2);
  for (std::size_t i = 0; i < LinkMeasurement::kProbes; ++i) {
    const auto reaction = good.on_message(probe);
    CHECK(reaction.kind == Kind::answer);
    CHECK(reaction.answer == wire::ControlMessage(wire::LinkProbe{0, true, probe.padding}));
  }
  CHECK(good.on_message(nomination).answer == wire::ControlMessage(wire::Welcome{0}));
  CHECK(good.path() == nomination.path);
  CHECK(good.on_message(wire::Welcome{2}).kind == Kind::confirmed);

  CHECK(good.on_message(nomination).kind == Kind::violation);
  CHECK(good.on_message(probe).kind == Kind::violation);
  CandidateResponder fresh(0, 2);
  CHECK(fresh.on_message(wire::Welcome{2}).kind == Kind::violation);
  CHECK(fresh.on_message(wire::LinkProbe{0, true, {}}).kind == Kind::violation);
  CHECK(fresh.on_message(wire::LinkProbe{0, false, probe.padding + "x"}).kind == Kind::violation);
  CHECK(fresh.on_message(wire::Join{}).kind == Kind::violation);
  CHECK(fresh.on_message(nomination).kind == Kind::answer);
  CHECK(fresh.on_message(wire::Welcome{1}).kind == Kind::violation);
}

TEST_CASE("a rank that connects is admitted once the world's number is known, and must have the same") {
  Stage stage(world_options(0, 3));
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, nullptr, {}, stage.count_changes());
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });
  Talker& early = stage.dial(wire::Connect{settings(1), 77});
  CHECK(early.heard.empty());
  CHECK_FALSE(stage.world.has_session(1));
  admission.set_world_id(77);
  stage.pass();
  CHECK(stage.world.has_session(1));
  CHECK(stage.links.has(1));
  CHECK(stage.changes == 1);
  REQUIRE(early.last<wire::Welcome>() != nullptr);

  Talker& twin = stage.dial(wire::Connect{settings(1), 77});
  REQUIRE(twin.last<wire::Abort>() != nullptr);
  CHECK_THAT(twin.last<wire::Abort>()->text, Contains("rank 1 is already there"));
  Talker& stranger = stage.dial(wire::Connect{settings(2), 78});
  REQUIRE(stranger.last<wire::Abort>() != nullptr);
  CHECK_THAT(stranger.last<wire::Abort>()->text, Contains("another world"));
  CHECK(stage.world.failure().ok());
  // Another size is a mistake of the one who started the ranks.
  stage.dial(wire::Connect{settings(2, 4), 77});
  CHECK(stage.world.failure().code() == Errc::mismatch);
}

TEST_CASE("peers that begin with anything else are dropped, and admit nobody") {
  Stage stage(world_options(0, 3));
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, nullptr, {true, 77}, stage.count_changes());
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });
  for (const wire::ControlMessage& message : {wire::ControlMessage(wire::Welcome{1}), wire::ControlMessage(wire::Ready{}),
                                              wire::ControlMessage(wire::Nominate{}), wire::ControlMessage(wire::Roster{})}) {
    Talker& talker = stage.dial(message);
    CHECK(talker.ended);
    CHECK(talker.heard.empty());
  }
  CHECK_THAT(stage.dial(wire::SeatRequest{"guest"}).last<wire::Abort>()->text, Contains("guests get their seat from rank 0"));
  CHECK_THAT(stage.dial(wire::Join{settings(1), "", 5000}).last<wire::Abort>()->text, Contains("not the coordinator"));
  CHECK_THAT(stage.dial(wire::Propose{settings(2), 77, 1}).last<wire::Abort>()->text, Contains("at this address is rank 0"));
  CHECK(stage.changes == 0);
  CHECK(stage.world.failure().ok());
}

TEST_CASE("when admission ends, peers that wait and peers that come are told the reason") {
  Stage stage(world_options(0, 3));
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, nullptr, {}, stage.count_changes());
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });
  Talker& waiting = stage.dial(wire::Connect{settings(1), 77});
  const bool told = GENERATE(true, false);
  told ? admission.refuse_all({Errc::invalid_argument, "closed"}) : admission.drop_all();
  Talker& late = stage.dial(wire::Connect{settings(2), 77});
  stage.pass(Duration::seconds(2));
  for (const Talker* talker : {&waiting, &late}) {
    CHECK(talker->ended);
    CHECK(talker->heard.size() == (told ? 1u : 0u));
    if (told) CHECK(talker->last<wire::Abort>()->text == "closed");
  }
}

TEST_CASE("the coordinator gives seats to guests, says how many are there, and the roster when all are") {
  Stage stage(world_options(0, 3, 1));
  CoordinatorOptions options;
  options.world_id = 77;
  options.natives_join = true;
  options.known = {{0, stage.node.host(), 5000}};
  std::vector<std::string> names;
  options.on_guests = [&](const std::vector<std::string>& now) { names = now; };
  Coordinator* updated = nullptr;
  Coordinator coordinator(stage.node.loop(), stage.world, stage.links, options, [&] { updated->update(); });
  updated = &coordinator;
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, &coordinator, {true, 77}, [&] { coordinator.update(); });
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });

  Talker& guest = stage.dial(wire::SeatRequest{"phone"});
  REQUIRE(guest.last<wire::Seat>() != nullptr);
  CHECK(guest.last<wire::Seat>()->rank == 2);
  CHECK(guest.last<wire::Seat>()->present == 2);
  CHECK(coordinator.guests_here() == 1);
  REQUIRE(names.size() == 1);
  CHECK_THAT(names[0], Contains("phone"));
  CHECK_THAT(stage.dial(wire::SeatRequest{"tablet"}).last<wire::Abort>()->text, Contains("all seats for guests are taken"));

  Talker& native = stage.dial(wire::Join{settings(1, 3, 1), "", 4711});
  for (const Talker* talker : {&guest, &native}) {
    REQUIRE(talker->last<wire::Roster>() != nullptr);
    const wire::Roster& roster = *talker->last<wire::Roster>();
    CHECK(roster.world_id == 77);
    REQUIRE(roster.members.size() == 3);
    CHECK(roster.members[0].host == stage.node.host());
    CHECK(roster.members[1].port == 4711);
    CHECK(roster.members[2].host.empty());
    CHECK_THAT(roster.members[2].name, Contains("phone"));
  }
  CHECK_FALSE(coordinator.awaits_guests());
  CHECK(stage.links.complete());
  CHECK(stage.world.has_session(2));
}
