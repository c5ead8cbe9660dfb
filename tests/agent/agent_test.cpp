#include "tools/agent/agent.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>

#include "core/rendezvous/dialler.hpp"
#include "tests/machines/home.hpp"
#include "tools/job/message_link.hpp"

using namespace ringlet;
using namespace ringlet::agent;
using namespace ringlet::test;
using Catch::Matchers::Contains;
using machines::KnownMachines;
using machines::MachineKey;

namespace {

constexpr char kToken[] = "a-token-that-only-the-tests-have";

/// An agent on the loopback, and one that asks it.
class Asked {
 public:
  Asked() {
    AgentOptions options;
    options.name = "attic";
    options.group = "home";
    options.version = "9.9.9";
    options.token = kToken;
    options.listen = Address{"127.0.0.1", 0};
    options.allowed = AllowList({"/bin/true"}, "");
    options.key = made_key(1);
    options.machines = known;
    options.find_machine = [](std::uint64_t) { return std::vector<Address>(); };
    agent.emplace(loop, std::move(options), [this](const AgentEvent& event) { events.push_back(event); });
    REQUIRE(agent->open().ok());
  }
  ~Asked() {
    link.reset();
    run_until([this] { return agent->idle(); });
  }

  void run_until(const std::function<bool()>& condition) {
    bool late = false;
    const TimerId timer = loop.after(Duration::seconds(20), [&late] { late = true; });
    while (!condition() && !late) loop.wait();
    loop.cancel(timer);
    REQUIRE_FALSE(late);
  }
  void dial() {
    dialler.dial({"127.0.0.1", agent->port()}, {}, {.kind = LinkRequest::Kind::agent}, [this](Result<std::unique_ptr<Link>> dialled) {
      link = std::make_unique<job::MessageLink>(loop, std::move(dialled).value(), job::kAgentLimits);
      link->start([this](const job::Message& message) { answers.push_back(message); }, [this](const Status&) { lost = true; });
    });
    run_until([this] { return link != nullptr; });
  }
  /// Sends a Hail, and returns the agent's Offer.
  job::Offer hail(const std::function<void(job::Hail&)>& sign) {
    job::Hail hail{job::kProtocol, "1.2.3", "home", "desk", "/bin/true", ""};
    sign(hail);
    link->send(hail);
    run_until([this] { return !answers.empty() || lost; });
    REQUIRE_FALSE(answers.empty());
    return std::get<job::Offer>(answers.front());
  }
  void start_ranks() {
    job::StartRanks start;
    start.ranks = start.world_size = 1;
    start.program = "/bin/true";
    start.coordinator = "127.0.0.1:1";
    link->send(start);
  }

  Home home;
  KnownMachines known = home.known(made_key(1).public_key());
  UvLoop loop;
  UvNetwork network{loop};
  TokenAuthenticator authenticator{kToken};
  Dialler dialler{loop, network, authenticator};
  std::vector<AgentEvent> events;
  std::optional<Agent> agent;
  LinkIdentity desk{made_key(2), "desk", "1.2.3"};
  std::unique_ptr<job::MessageLink> link;
  std::vector<job::Message> answers;
  bool lost = false;
};

}  // namespace

TEST_CASE("an agent makes an offer to one that proves its key, and proves its own") {
  Asked asked;
  asked.dial();
  const job::Offer offer = asked.hail([&](job::Hail& hail) { asked.desk.sign(hail, asked.link->binding()); });
  CHECK(offer.refusal.empty());
  CHECK(sender_of(offer, "home", asked.link->binding()) == made_key(1).public_key());
  CHECK_FALSE(sender_of(offer, "home", LinkBinding{}));
  CHECK_FALSE(sender_of(offer, "office", asked.link->binding()));
  REQUIRE(asked.events.size() == 1);
  CHECK(asked.events[0].kind == AgentEvent::Kind::first_contact);
  CHECK(asked.events[0].job.from == "desk");
  CHECK(asked.events[0].text == machines::fingerprint(made_key(2).public_key()));
}

TEST_CASE("a key that was proved elsewhere, or not at all, is refused, and the link is dropped") {
  Asked asked;
  asked.dial();
  const auto sign = GENERATE_COPY(values<std::function<void(job::Hail&, const Asked&)>>({
      [](job::Hail&, const Asked&) {},
      // For another link, as one in the middle would pass it on.
      [](job::Hail& hail, const Asked& one) {
        LinkBinding other = one.link->binding();
        other[0] ^= std::byte{1};
        one.desk.sign(hail, other);
      },
      // In another part: the answer of a machine that was asked on this link.
      [](job::Hail& hail, const Asked& one) {
        job::Offer offer;
        offer.name = hail.from;
        one.desk.sign(offer, "home", one.link->binding());
        hail.public_key = offer.public_key;
        hail.signature = offer.signature;
      },
      // For another group.
      [](job::Hail& hail, const Asked& one) {
        hail.group = "office";
        one.desk.sign(hail, one.link->binding());
        hail.group = "home";
      },
      // With another one's key.
      [](job::Hail& hail, const Asked& one) {
        one.desk.sign(hail, one.link->binding());
        const auto key = made_key(3).public_key();
        hail.public_key.assign(reinterpret_cast<const char*>(key.data()), key.size());
      },
      // By another name.
      [](job::Hail& hail, const Asked& one) {
        one.desk.sign(hail, one.link->binding());
        hail.from = "roof";
      },
  }));
  const job::Offer offer = asked.hail([&](job::Hail& hail) { sign(hail, asked); });
  CHECK(offer.refusal_code == 126);
  CHECK_THAT(offer.refusal, Contains("did not prove its key"));
  CHECK(asked.known.load().empty());
  asked.start_ranks();
  asked.run_until([&] { return asked.lost; });
  CHECK(asked.answers.size() == 1);
  CHECK(asked.events.size() == 1);
}

TEST_CASE("a machine that is removed while it is linked starts nothing more") {
  Asked asked;
  asked.known.trust_paired("desk", made_key(2).public_key());
  asked.dial();
  CHECK(asked.hail([&](job::Hail& hail) { asked.desk.sign(hail, asked.link->binding()); }).refusal.empty());
  asked.known.remove("desk");
  asked.start_ranks();
  asked.run_until([&] { return asked.answers.size() >= 2; });
  const auto* failed = std::get_if<job::Failed>(&asked.answers[1]);
  REQUIRE(failed != nullptr);
  CHECK(failed->exit_code == 126);
  CHECK_THAT(failed->text, Contains("was removed from group home"));
}

TEST_CASE("a list that cannot be read lets nobody in") {
  Asked asked;
  asked.known.trust_paired("desk", made_key(2).public_key());
  REQUIRE(std::system(("echo nonsense >> " + asked.home.list_file()).c_str()) == 0);
  asked.dial();
  const job::Offer offer = asked.hail([&](job::Hail& hail) { asked.desk.sign(hail, asked.link->binding()); });
  CHECK(offer.refusal_code == 126);
  CHECK_THAT(offer.refusal, Contains("it cannot tell whom it trusts") && Contains("line 2"));
}
