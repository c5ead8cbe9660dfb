#include <deque>

#include "tests/conformance/suite_user.hpp"

namespace ringlet::conformance {

namespace {

constexpr Duration kTimeout = Duration::seconds(10);

struct DialResult {
  int calls = 0;
  Status status;
  std::unique_ptr<Link> link;

  Dialled keep() {
    return [this](Result<std::unique_ptr<Link>> result) {
      ++calls;
      status = result.status();
      if (result.ok()) link = std::move(result).value();
    };
  }
};

std::unique_ptr<Listener> listen(NetworkPair& pair, Acceptor on_accept) {
  auto opened = pair.network(1).listen(pair.any_port(1), std::move(on_accept));
  REQUIRE(opened.ok());
  return std::move(opened).value();
}

void a_dial_succeeds_once(NetworkPair& pair) {
  std::unique_ptr<Link> accepted;
  const auto listener = listen(pair, [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  CHECK(listener->address().host == pair.any_port(1).host);
  CHECK(listener->address().port != 0);
  DialResult result;
  pair.network(0).dial(listener->address(), kTimeout, result.keep());
  CHECK(result.calls == 0);
  REQUIRE(pair.drive([&] { return result.calls > 0 && accepted; }));
  settle(pair);
  CHECK(result.calls == 1);
  REQUIRE(result.link);
  CHECK(result.link->peer_name() == to_string(listener->address()));
  CHECK_FALSE(accepted->peer_name().empty());
}

void a_dial_to_a_closed_listener_is_refused(NetworkPair& pair) {
  auto listener = listen(pair, [](std::unique_ptr<Link>) { FAIL("nobody was to be accepted"); });
  const Address address = listener->address();
  listener.reset();
  DialResult result;
  pair.network(0).dial(address, kTimeout, result.keep());
  CHECK(result.calls == 0);
  REQUIRE(pair.drive([&] { return result.calls > 0; }));
  settle(pair);
  CHECK(result.calls == 1);
  CHECK(result.status.code() == Errc::peer_lost);
  CHECK_THAT(result.status.text(), Catch::Contains(std::to_string(address.port)));
}

void a_listener_may_die_while_links_live(NetworkPair& pair) {
  LinkedUsers users(pair);
  const Address address = users.listener->address();
  users.listener.reset();
  users.dialler.send(5000);
  users.acceptor.send(5000);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 5000 && users.acceptor.bytes_received == 5000; }));
  DialResult result;
  pair.network(0).dial(address, kTimeout, result.keep());
  REQUIRE(pair.drive([&] { return result.calls > 0; }));
  CHECK(result.status.code() == Errc::peer_lost);
}

void a_listener_may_die_in_its_own_callback(NetworkPair& pair) {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Link> accepted;
  auto token = std::make_shared<int>(7);
  listener = listen(pair, [&, token](std::unique_ptr<Link> link) {
    listener.reset();
    CHECK(*token == 7);
    accepted = std::move(link);
  });
  DialResult result;
  pair.network(0).dial(listener->address(), kTimeout, result.keep());
  REQUIRE(pair.drive([&] { return result.calls > 0 && accepted; }));
  CHECK(result.status.ok());
  settle(pair);
  CHECK(token.use_count() == 1);
}

void a_link_may_die_as_it_is_accepted(NetworkPair& pair) {
  int accepted = 0;
  const auto listener = listen(pair, [&](std::unique_ptr<Link> link) {
    link.reset();
    ++accepted;
  });
  SuiteUser dialler(1, 2);
  pair.network(0).dial(listener->address(), kTimeout, [&](Result<std::unique_ptr<Link>> link) {
    REQUIRE(link.ok());
    dialler.use(std::move(link).value());
  });
  REQUIRE(pair.drive([&] { return accepted == 1 && dialler.closed_by_peer(); }));
}

void a_link_may_die_as_it_is_dialled(NetworkPair& pair) {
  SuiteUser acceptor(2, 1);
  const auto listener = listen(pair, [&](std::unique_ptr<Link> link) { acceptor.use(std::move(link)); });
  int calls = 0;
  pair.network(0).dial(listener->address(), kTimeout, [&](Result<std::unique_ptr<Link>> link) {
    ++calls;
    CHECK(link.ok());
  });
  REQUIRE(pair.drive([&] { return calls == 1 && acceptor.closed_by_peer(); }));
}

void a_port_is_taken_once(NetworkPair& pair) {
  const auto listener = listen(pair, [](std::unique_ptr<Link>) {});
  const auto second = pair.network(1).listen(listener->address(), [](std::unique_ptr<Link>) {});
  REQUIRE_FALSE(second.ok());
  CHECK(second.status().code() == Errc::invalid_argument);
  CHECK_THAT(second.status().text(), Catch::Contains(std::to_string(listener->address().port)));
}

void a_foreign_address_cannot_be_listened_on(NetworkPair& pair) {
  // This address is reserved for documentation, so no machine has it.
  const auto opened = pair.network(1).listen({"203.0.113.77", 0}, [](std::unique_ptr<Link>) {});
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.status().code() == Errc::invalid_argument);
  CHECK_THAT(opened.status().text(), Catch::Contains("203.0.113.77"));
}

void a_destroyed_network_drops_its_dials(NetworkPair& pair) {
  std::vector<std::unique_ptr<Link>> accepted;
  const auto listener = listen(pair, [&](std::unique_ptr<Link> link) { accepted.push_back(std::move(link)); });
  auto token = std::make_shared<int>(0);
  pair.network(0).dial(listener->address(), kTimeout, [token](Result<std::unique_ptr<Link>>) { ++*token; });
  pair.destroy_network(0);
  settle(pair);
  CHECK(*token == 0);
  CHECK(token.use_count() == 1);
}

void many_links_at_once(NetworkPair& pair) {
  constexpr std::size_t kLinks = 20;
  constexpr std::size_t kBytes = 20'000;
  std::deque<SuiteUser> acceptors;
  std::deque<SuiteUser> diallers;
  // The links may be accepted in any order, so all use the same pattern in each direction.
  const auto listener = listen(pair, [&](std::unique_ptr<Link> link) {
    acceptors.emplace_back(2U, 1U).use(std::move(link));
    acceptors.back().send(kBytes);
  });
  for (std::size_t index = 0; index < kLinks; ++index) {
    pair.network(0).dial(listener->address(), kTimeout, [&](Result<std::unique_ptr<Link>> link) {
      REQUIRE(link.ok());
      diallers.emplace_back(1U, 2U).use(std::move(link).value());
      diallers.back().send(kBytes);
    });
  }
  const auto complete = [](const std::deque<SuiteUser>& users) {
    return users.size() == kLinks &&
           std::all_of(users.begin(), users.end(), [](const auto& user) { return user.bytes_received == kBytes; });
  };
  CHECK(pair.drive([&] { return complete(diallers) && complete(acceptors); }));
}

}  // namespace

std::vector<Case> dial_cases() {
  return {{"a dial succeeds once", a_dial_succeeds_once},
          {"a dial to a closed listener is refused", a_dial_to_a_closed_listener_is_refused},
          {"a listener may die while links live", a_listener_may_die_while_links_live},
          {"a listener may die in its own callback", a_listener_may_die_in_its_own_callback},
          {"a link may die as it is accepted", a_link_may_die_as_it_is_accepted},
          {"a link may die as it is dialled", a_link_may_die_as_it_is_dialled},
          {"a port is taken once", a_port_is_taken_once},
          {"a foreign address cannot be listened on", a_foreign_address_cannot_be_listened_on},
          {"a destroyed network drops its dials", a_destroyed_network_drops_its_dials},
          {"many links at once", many_links_at_once}};
}

}  // namespace ringlet::conformance
