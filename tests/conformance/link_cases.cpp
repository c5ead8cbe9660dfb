#include <deque>

#include "tests/conformance/suite_user.hpp"

namespace ringlet::conformance {

namespace {

void echo(NetworkPair& pair) {
  LinkedUsers users(pair);
  // The acceptor answers with its own pattern, of the same length as the dialler's.
  users.acceptor.on_call = [&](Call call) {
    if (call == Call::received) users.acceptor.bytes_to_send = users.acceptor.bytes_received;
    if (call == Call::received) users.acceptor.link->wake();
  };
  for (std::size_t total : {1U, 2U, 100U, 9000U}) {
    users.dialler.send(total - users.dialler.bytes_to_send);
    REQUIRE(pair.drive([&] { return users.dialler.bytes_received == total; }));
  }
}

void megabytes_both_ways(NetworkPair& pair) {
  LinkedUsers users(pair);
  constexpr std::size_t kBytes = 1'500'000;
  users.dialler.longest_part = 40'000;
  users.acceptor.longest_part = 3'000;
  users.dialler.send(kBytes);
  users.acceptor.send(kBytes);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == kBytes && users.acceptor.bytes_received == kBytes; }));
  REQUIRE(pair.drive([&] { return users.dialler.bytes_sent == kBytes && users.acceptor.bytes_sent == kBytes; }));
  CHECK_FALSE(users.dialler.closed_by_peer());
  CHECK_FALSE(users.acceptor.closed_by_peer());
}

void small_parts(NetworkPair& pair) {
  LinkedUsers users(pair);
  constexpr std::size_t kBytes = 20'000;
  users.dialler.longest_part = 3;
  users.dialler.receive_parts = 1;
  users.acceptor.longest_part = 5;
  users.dialler.send(kBytes);
  users.acceptor.send(kBytes);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == kBytes && users.acceptor.bytes_received == kBytes; }));
}

void one_part_to_receive(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.acceptor.receive_parts = 1;
  users.dialler.send(100'000);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 100'000; }));
}

void a_wake_with_nothing_to_send(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.wake();
  settle(pair);
  CHECK(users.dialler.bytes_sent == 0);
  CHECK(users.acceptor.bytes_received == 0);
  users.dialler.send(10);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 10; }));
}

void many_wakes_send_once(NetworkPair& pair) {
  LinkedUsers users(pair);
  for (int round = 0; round < 100; ++round) {
    users.dialler.send(10);
    for (int again = 0; again < 10; ++again) users.dialler.wake();
  }
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 1000; }));
  settle(pair);
  const int pulls = users.dialler.to_send_calls;
  settle(pair);
  CHECK(users.acceptor.bytes_received == 1000);
  CHECK(users.dialler.to_send_calls == pulls);
}

/// SuiteUser checks that the link does not call it while it is inside a call to the link.
void wakes_inside_every_call(NetworkPair& pair) {
  LinkedUsers users(pair);
  for (SuiteUser* user : {&users.dialler, &users.acceptor}) {
    user->on_call = [user](Call call) {
      if (call != Call::to_send && call != Call::link_failed) user->wake();
    };
  }
  users.dialler.send(100'000);
  users.acceptor.send(100'000);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 100'000 && users.acceptor.bytes_received == 100'000; }));
}

/// A wake inside a to_send() that returns nothing counts: the bytes that were added meanwhile must be sent.
void a_wake_inside_an_empty_to_send(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.on_call = [&](Call call) {
    if (call != Call::to_send || users.dialler.bytes_to_send > 0) return;
    users.dialler.send(500);
  };
  users.dialler.wake();
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 500; }));
}

void bytes_wait_for_the_start(NetworkPair& pair) {
  constexpr std::size_t kBytes = 80;  // fewer than any link holds while nobody reads
  std::unique_ptr<Link> accepted;
  SuiteUser dialler(1, 2);
  SuiteUser acceptor(2, 1);
  auto opened = pair.network(1).listen(pair.any_port(1), [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  REQUIRE(opened.ok());
  pair.network(0).dial(opened.value()->address(), Duration::seconds(10), [&](Result<std::unique_ptr<Link>> link) {
    REQUIRE(link.ok());
    dialler.use(std::move(link).value());
    dialler.send(kBytes);
    dialler.finish_sending();
  });
  REQUIRE(pair.drive([&] { return accepted && dialler.bytes_sent == kBytes; }));
  settle(pair);
  acceptor.use(std::move(accepted));
  REQUIRE(pair.drive([&] { return acceptor.receive_ended_calls == 1; }));
  CHECK(acceptor.bytes_received == kBytes);
}

void links_do_not_hinder_each_other(NetworkPair& pair) {
  LinkedUsers users(pair);
  std::unique_ptr<Link> idle_end;
  SuiteUser blocked(3, 4);
  auto opened = pair.network(1).listen(pair.any_port(1), [&](std::unique_ptr<Link> link) { idle_end = std::move(link); });
  REQUIRE(opened.ok());
  pair.network(0).dial(opened.value()->address(), Duration::seconds(10), [&](Result<std::unique_ptr<Link>> link) {
    REQUIRE(link.ok());
    blocked.use(std::move(link).value());
    blocked.longest_part = 100'000;
    blocked.send(30'000'000);
  });
  REQUIRE(pair.drive([&] { return idle_end && blocked.to_send_calls > 0; }));
  settle(pair);
  // The other end does not read, so the link must have stopped taking bytes.
  CHECK(blocked.bytes_sent < blocked.bytes_to_send);
  users.dialler.send(50'000);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 50'000; }));
}

/// Makes `next` the user of the link, at the position that `former` has reached.
void take_over(SuiteUser& former, SuiteUser& next) {
  next.bytes_received = former.bytes_received;
  next.bytes_sent = next.bytes_to_send = former.bytes_sent;
  next.use(std::move(former.link));
}

void one_user_after_another(NetworkPair& pair) {
  LinkedUsers users(pair);
  std::deque<SuiteUser> heirs;
  // Each user reads exactly its own share. Inside received() it hands the link on to a new user, which sends an answer.
  const auto hand_on = [&](SuiteUser& user, std::size_t share, const auto& self) -> void {
    user.receive_limit = user.bytes_received + share;
    user.on_call = [&, share, self](Call call) {
      if (call != Call::received || user.bytes_received < user.receive_limit) return;
      SuiteUser& heir = heirs.emplace_back(2U, 1U);
      take_over(user, heir);
      if (heirs.size() < 20) self(heir, share * 2 % 1009, self);
      heir.send(100);
    };
  };
  hand_on(users.acceptor, 40, hand_on);
  users.dialler.send(100'000);
  REQUIRE(pair.drive([&] { return heirs.size() == 20 && heirs.back().bytes_received == 100'000; }));
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == heirs.back().bytes_sent && heirs.back().bytes_sent >= 100; }));
}

void one_user_after_another_inside_sent(NetworkPair& pair) {
  LinkedUsers users(pair);
  SuiteUser heir(1, 2);
  users.dialler.on_call = [&](Call call) {
    if (call != Call::sent || users.dialler.bytes_sent < 5000) return;
    take_over(users.dialler, heir);
    heir.send(7000);
  };
  users.dialler.send(5000);
  users.acceptor.send(9000);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 12'000 && heir.bytes_received == 9000; }));
}

void a_new_user_hears_of_the_end(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.send(50);
  users.dialler.finish_sending();
  REQUIRE(pair.drive([&] { return users.acceptor.receive_ended_calls == 1; }));
  SuiteUser heir(2, 1);
  take_over(users.acceptor, heir);
  REQUIRE(pair.drive([&] { return heir.receive_ended_calls == 1; }));
  heir.send(3000);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 3000; }));
}

void no_room_until_a_wake(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.longest_part = 100'000;
  users.acceptor.receive_limit = 0;
  users.dialler.send(30'000'000);
  users.dialler.finish_sending();
  REQUIRE(pair.drive([&] { return users.dialler.bytes_sent > 0; }));
  settle(pair);
  CHECK(users.acceptor.bytes_received == 0);
  CHECK(users.dialler.bytes_sent < users.dialler.bytes_to_send);
  // The acceptor can send while it has no room to receive.
  users.acceptor.receive_limit = 1000;
  users.acceptor.send(2000);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 1000 && users.dialler.bytes_received == 2000; }));
  settle(pair);
  CHECK(users.acceptor.bytes_received == 1000);
  users.dialler.bytes_to_send = users.dialler.bytes_sent + 1000;
  users.acceptor.longest_part = 100'000;
  users.acceptor.receive_limit = SIZE_MAX;
  users.acceptor.wake();
  REQUIRE(pair.drive([&] { return users.acceptor.receive_ended_calls == 1; }));
  CHECK(users.acceptor.bytes_received == users.dialler.bytes_to_send);
}

}  // namespace

std::vector<Case> link_cases() {
  return {{"echo", echo},
          {"megabytes both ways", megabytes_both_ways},
          {"small parts", small_parts},
          {"one part to receive", one_part_to_receive},
          {"a wake with nothing to send", a_wake_with_nothing_to_send},
          {"many wakes send once", many_wakes_send_once},
          {"wakes inside every call", wakes_inside_every_call},
          {"a wake inside an empty to_send", a_wake_inside_an_empty_to_send},
          {"bytes wait for the start", bytes_wait_for_the_start},
          {"one user after another", one_user_after_another},
          {"one user after another inside sent", one_user_after_another_inside_sent},
          {"a new user hears of the end", a_new_user_hears_of_the_end},
          {"no room until a wake", no_room_until_a_wake},
          {"links do not hinder each other", links_do_not_hinder_each_other}};
}

}  // namespace ringlet::conformance
