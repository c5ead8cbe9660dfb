#include <catch2/catch.hpp>

#include "tests/agent/fake_machines.hpp"
#include "tests/core/test_authenticator.hpp"
#include "tests/machines/home.hpp"
#include "tools/agent/link_identity.hpp"
#include "tools/machines/known_machines.hpp"

using namespace ringlet;
using namespace ringlet::test;
using agent::LinkIdentity;
using agent::sender_of;
using Catch::Matchers::Contains;
using machines::fingerprint;
using machines::KnownMachines;
using machines::MachineKey;
using machines::PublicKey;
using machines::Trust;

namespace {

constexpr char kToken[] = "the token that the one in the middle knows";

/// Joins two authenticated links, each with a handshake of its own, and passes on what comes out of one into the other.
class Middle {
 public:
  Middle(SimWorld& world, std::string target, bool encrypts)
      : node(world.add_node()),
        target_(std::move(target)),
        near_authenticator_(71, kToken, encrypts),
        far_authenticator_(72, kToken, encrypts) {
    near_.other = &far_;
    far_.other = &near_;
    listener_ = std::move(node.network().listen({node.host(), 5000}, [this](std::unique_ptr<Link> link) {
                  handshake_ = std::make_unique<AcceptHandshake>(
                      node.loop(), std::move(link), ConstBytes{}, near_authenticator_, [this](const LinkRequest&) { handshake_->accept(); },
                      [this](Result<std::unique_ptr<Link>> near) {
                        near_.use(std::move(near).value());
                        dialler_.dial({target_, 5000}, {}, {.kind = LinkRequest::Kind::agent},
                                      [this](Result<std::unique_ptr<Link>> far) { far_.use(std::move(far).value()); });
                      });
                })).value();
  }
  bool joined() const { return near_.passed > 0; }

  SimNode& node;

 private:
  struct End final : LinkUser {
    std::span<const ConstBytes> to_send() override {
      part = ConstBytes(outgoing).subspan(sent_bytes);
      return {&part, part.empty() ? 0u : 1u};
    }
    void sent(std::size_t bytes) override { sent_bytes += bytes; }
    std::span<const Bytes> to_receive() override { return {&room, 1}; }
    void received(std::size_t bytes) override {
      passed += bytes;
      other->outgoing.insert(other->outgoing.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(bytes));
      if (other->link) other->link->wake();
    }
    void receive_ended() override {
      if (other->link) other->link->finish_sending();
    }
    void link_failed(const Status&) override {}
    void use(std::unique_ptr<Link> new_link) {
      link = std::move(new_link);
      link->start(*this);
      link->wake();
    }

    End* other = nullptr;
    std::unique_ptr<Link> link;
    std::vector<std::byte> outgoing;
    std::size_t sent_bytes = 0, passed = 0;
    std::array<std::byte, 100> buffer{};
    Bytes room{buffer};
    ConstBytes part;
  };

  std::string target_;
  TestAuthenticator near_authenticator_, far_authenticator_;
  Dialler dialler_{node.loop(), node.network(), far_authenticator_};
  std::unique_ptr<AcceptHandshake> handshake_;
  std::unique_ptr<Listener> listener_;
  End near_, far_;
};

/// A run on one machine, m0, where both prove their keys, as `ringlet run` and `ringlet up` do.
struct ProvedRun {
  explicit ProvedRun(bool encrypts = true) {
    run.authenticator = std::make_unique<TestAuthenticator>(1, kToken, encrypts);
    machine.authenticator = std::make_unique<TestAuthenticator>(2, kToken, encrypts);
    machine.on_started = [](FakeCrew& crew) { crew.end(0, 0); };
    machine.on_hail = [this](const job::Hail& hail, const LinkBinding& binding) {
      job::Offer offer{job::kProtocol, "9.9.9", own_name, 4, "", 126};
      const auto key = sender_of(hail, "home", binding);
      if (!key)
        offer.refusal = "not proved";
      else
        offer.refusal = machine_knows.meet_asking(hail.from, *key).refusal;
      proved = key;
      LinkIdentity(machine_key, own_name, "9.9.9").sign(offer, "home", binding);
      return offer;
    };
    run.options.introduce = [this](job::Hail& hail, const LinkBinding& binding) {
      LinkIdentity(run_key, "desk", "1.2.3").sign(hail, binding);
    };
    run.options.check_identity = [this](const job::Candidate& candidate, const job::Offer& offer,
                                        const LinkBinding& binding) -> std::optional<std::string> {
      const auto key = sender_of(offer, "home", binding);
      if (!key || offer.name != candidate.name) return "not proved";
      machines::Acquaintance met = run_knows.meet_answering(candidate.name, *key);
      first_contacts += met.first ? 1 : 0;
      return met.refusal.empty() ? std::nullopt : std::optional(std::move(met.refusal));
    };
  }
  void go() {
    run.start();
    run.run_to_end();
  }
  Home run_home, machine_home;
  MachineKey run_key = made_key(1), machine_key = made_key(2);
  KnownMachines run_knows = run_home.known(run_key.public_key()), machine_knows = machine_home.known(machine_key.public_key());
  FakeRun run{1};
  FakeMachine& machine = run.machines[0];
  std::string own_name = "m0";
  std::optional<PublicKey> proved;
  int first_contacts = 0;
};

}  // namespace

TEST_CASE("both ends prove their keys, and remember each other") {
  const bool encrypts = GENERATE(true, false);
  ProvedRun proved(encrypts);
  proved.go();
  CAPTURE(proved.run.result->error);
  CHECK(proved.run.result->exit_code == 0);
  CHECK(proved.first_contacts == 1);
  CHECK(proved.proved == proved.run_key.public_key());
  CHECK(proved.run_knows.load() == std::vector<machines::KnownMachine>{{"m0", proved.machine_key.public_key(), Trust::seen}});
  CHECK(proved.machine_knows.load() == std::vector<machines::KnownMachine>{{"desk", proved.run_key.public_key(), Trust::seen}});
}

TEST_CASE("who is in the middle with the token, but without a key, is noticed by both ends") {
  const bool encrypts = GENERATE(true, false);
  const bool known = GENERATE(true, false);
  ProvedRun proved(encrypts);
  if (known) {
    proved.run_knows.trust_paired("m0", proved.machine_key.public_key());
    proved.machine_knows.trust_paired("desk", proved.run_key.public_key());
  }
  Middle middle(proved.run.world, proved.machine.node.host(), encrypts);
  proved.run.dialled_hosts[0] = middle.node.host();
  proved.go();
  CHECK(middle.joined());
  CHECK(proved.run.result->exit_code == 126);
  CHECK(proved.run.result->error == "not proved");
  CHECK(proved.machine.hailed.from == "desk");
  CHECK_FALSE(proved.proved);
  CHECK(proved.machine.jobs_started == 0);
  CHECK(proved.first_contacts == 0);
  CHECK(proved.run_knows.load().size() == (known ? 1 : 0));
}

TEST_CASE("another machine in the place of a known one takes no part, and both keys are told") {
  ProvedRun proved;
  proved.run_knows.trust_paired("m0", made_key(3).public_key());
  proved.go();
  CHECK(proved.run.result->exit_code == 126);
  CHECK_THAT(proved.run.result->error, Contains(fingerprint(made_key(3).public_key())) &&
                                           Contains(fingerprint(proved.machine_key.public_key())) &&
                                           Contains("ringlet machines remove m0"));
  CHECK(proved.machine.jobs_started == 0);
  CHECK(proved.run_knows.load()[0].key == made_key(3).public_key());
}

TEST_CASE("a connection that was led to another known machine of the group goes no further") {
  ProvedRun proved;
  proved.own_name = "m7";
  proved.run_knows.trust_paired("m7", proved.machine_key.public_key());
  proved.go();
  CHECK(proved.run.result->exit_code == 126);
  CHECK(proved.machine.jobs_started == 0);
}

TEST_CASE("a machine that was refused can ask for nothing more") {
  ProvedRun proved;
  proved.machine_knows.trust_paired("desk", proved.run_key.public_key());
  proved.machine_knows.remove("desk");
  // This one does not take no for an answer.
  std::unique_ptr<job::MessageLink> link;
  std::optional<job::Offer> offer;
  bool lost = false;
  Dialler dialler(proved.run.here.loop(), proved.run.here.network(), *proved.run.authenticator);
  dialler.dial({proved.machine.node.host(), 5000}, {}, {.kind = LinkRequest::Kind::agent}, [&](Result<std::unique_ptr<Link>> dialled) {
    link = std::make_unique<job::MessageLink>(proved.run.here.loop(), std::move(dialled).value(), job::kAgentLimits);
    link->start([&](const job::Message& message) { offer = std::get<job::Offer>(message); }, [&](const Status&) { lost = true; });
    job::Hail hail{job::kProtocol, "1.2.3", "home", "desk", "/opt/m0", ""};
    LinkIdentity(proved.run_key, "desk", "1.2.3").sign(hail, link->binding());
    link->send(hail);
    job::StartRanks start;
    start.ranks = start.world_size = 1;
    start.program = "/opt/m0";
    link->send(start);
  });
  REQUIRE(proved.run.run_until([&] { return lost; }) == RunEnd::done);
  CHECK(proved.machine.jobs_started == 0);
  CHECK_FALSE(proved.machine.session);
}

TEST_CASE("nothing is measured for one that did not say who it is") {
  ProvedRun proved;
  const job::Message question = GENERATE(job::Message(job::EchoRequest{1, "x", 1}), job::Message(job::PathSurvey{{7}}));
  std::unique_ptr<job::MessageLink> link;
  bool answered = false, lost = false;
  Dialler dialler(proved.run.here.loop(), proved.run.here.network(), *proved.run.authenticator);
  dialler.dial({proved.machine.node.host(), 5000}, {}, {.kind = LinkRequest::Kind::agent}, [&](Result<std::unique_ptr<Link>> dialled) {
    link = std::make_unique<job::MessageLink>(proved.run.here.loop(), std::move(dialled).value(), job::kAgentLimits);
    link->start([&](const job::Message&) { answered = true; }, [&](const Status&) { lost = true; });
    link->send(question);
  });
  REQUIRE(proved.run.run_until([&] { return lost; }) == RunEnd::done);
  CHECK_FALSE(answered);
}
