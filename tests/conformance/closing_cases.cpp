#include "tests/conformance/suite_user.hpp"

namespace ringlet::conformance {

namespace {

void each_direction_ends_by_itself(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.send(30'000);
  users.dialler.finish_sending();
  REQUIRE(pair.drive([&] { return users.acceptor.receive_ended_calls == 1; }));
  CHECK(users.acceptor.bytes_received == 30'000);
  users.acceptor.send(50'000);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 50'000; }));
  CHECK(users.dialler.receive_ended_calls == 0);
  users.acceptor.finish_sending();
  REQUIRE(pair.drive([&] { return users.dialler.receive_ended_calls == 1; }));
  settle(pair);
  CHECK(users.dialler.link_failed_calls + users.acceptor.link_failed_calls == 0);
}

void an_end_without_bytes(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.finish_sending();
  users.acceptor.finish_sending();
  REQUIRE(pair.drive([&] { return users.dialler.receive_ended_calls == 1 && users.acceptor.receive_ended_calls == 1; }));
}

void wakes_after_the_end_do_nothing(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.send(100);
  users.dialler.finish_sending();
  REQUIRE(pair.drive([&] { return users.acceptor.receive_ended_calls == 1; }));
  users.dialler.send(100);
  users.dialler.finish_sending();
  users.dialler.wake();
  settle(pair);
  CHECK(users.dialler.bytes_sent == 100);
  CHECK(users.acceptor.bytes_received == 100);
  CHECK(users.dialler.link_failed_calls == 0);
}

void finishing_sends_what_is_left(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.longest_part = 50'000;
  users.dialler.bytes_to_send = 3'000'000;
  users.dialler.finish_sending();
  REQUIRE(pair.drive([&] { return users.acceptor.receive_ended_calls == 1; }));
  CHECK(users.acceptor.bytes_received == 3'000'000);
}

void the_peer_sees_a_destroyed_end(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.send(100);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 100; }));
  users.acceptor.link.reset();
  REQUIRE(pair.drive([&] { return users.dialler.closed_by_peer(); }));
}

void the_peer_sees_the_end_of_a_link_never_started(NetworkPair& pair) {
  std::unique_ptr<Link> accepted;
  SuiteUser dialler(1, 2);
  auto opened = pair.network(1).listen(pair.any_port(1), [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  REQUIRE(opened.ok());
  pair.network(0).dial(opened.value()->address(), Duration::seconds(10), [&](Result<std::unique_ptr<Link>> link) {
    REQUIRE(link.ok());
    dialler.use(std::move(link).value());
  });
  REQUIRE(pair.drive([&] { return accepted && dialler.link; }));
  accepted.reset();
  REQUIRE(pair.drive([&] { return dialler.closed_by_peer(); }));
}

/// Bytes that an end accepted before its destruction still arrive, if that end had nothing unread.
void sent_bytes_survive_the_destruction_of_the_sender(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.send(900);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_sent == 900; }));
  users.dialler.link.reset();
  REQUIRE(pair.drive([&] { return users.acceptor.closed_by_peer(); }));
  CHECK(users.acceptor.bytes_received == 900);
  CHECK(users.acceptor.receive_ended_calls == 1);
}

void a_sender_to_a_destroyed_end_fails_once(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.longest_part = 100'000;
  users.dialler.send(20'000'000);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received > 0; }));
  users.acceptor.link.reset();
  REQUIRE(pair.drive([&] { return users.dialler.link_failed_calls == 1; }));
  CHECK(users.dialler.failure->code() == Errc::peer_lost);
  // The user checks that it is not called any more.
  users.dialler.wake();
  users.dialler.finish_sending();
  settle(pair);
  CHECK(users.dialler.bytes_sent < 20'000'000);
}

using End = SuiteUser LinkedUsers::*;

void destruction_inside(Call where, End end, NetworkPair& pair) {
  LinkedUsers users(pair);
  SuiteUser& own = users.*end;
  SuiteUser& other = &own == &users.dialler ? users.acceptor : users.dialler;
  bool destroyed = false;
  own.on_call = [&](Call call) {
    if (call != where) return;
    own.link.reset();
    own.bytes_to_send = own.bytes_sent;
    destroyed = true;
  };
  own.send(200'000);
  other.send(200'000);
  if (where == Call::receive_ended) {
    other.finish_sending();
  } else if (where == Call::link_failed) {
    own.longest_part = 100'000;
    own.send(20'000'000);
    REQUIRE(pair.drive([&] { return other.bytes_received > 0; }));
    other.link.reset();
  }
  REQUIRE(pair.drive([&] { return destroyed; }));
  if (other.link) REQUIRE(pair.drive([&] { return other.closed_by_peer(); }));
  settle(pair);
}

void destruction_of_the_other_end_inside_a_call(NetworkPair& pair) {
  LinkedUsers users(pair);
  users.dialler.on_call = [&](Call call) {
    if (call == Call::received) users.acceptor.link.reset();
  };
  users.acceptor.send(200'000);
  REQUIRE(pair.drive([&] { return users.dialler.closed_by_peer(); }));
}

void both_ends_destroyed_inside_a_call(NetworkPair& pair) {
  LinkedUsers users(pair);
  bool destroyed = false;
  users.dialler.on_call = [&](Call call) {
    if (call != Call::received) return;
    users.acceptor.link.reset();
    users.dialler.link.reset();
    destroyed = true;
  };
  users.acceptor.send(200'000);
  REQUIRE(pair.drive([&] { return destroyed; }));
  settle(pair);
}

}  // namespace

std::vector<Case> closing_cases() {
  std::vector<Case> cases{{"each direction ends by itself", each_direction_ends_by_itself},
                          {"an end without bytes", an_end_without_bytes},
                          {"wakes after the end do nothing", wakes_after_the_end_do_nothing},
                          {"finishing sends what is left", finishing_sends_what_is_left},
                          {"the peer sees a destroyed end", the_peer_sees_a_destroyed_end},
                          {"the peer sees the end of a link never started", the_peer_sees_the_end_of_a_link_never_started},
                          {"sent bytes survive the destruction of the sender", sent_bytes_survive_the_destruction_of_the_sender},
                          {"a sender to a destroyed end fails once", a_sender_to_a_destroyed_end_fails_once},
                          {"destruction of the other end inside a call", destruction_of_the_other_end_inside_a_call},
                          {"both ends destroyed inside a call", both_ends_destroyed_inside_a_call}};
  const std::vector<std::pair<Call, std::string>> calls{{Call::to_send, "to_send"},
                                                        {Call::sent, "sent"},
                                                        {Call::to_receive, "to_receive"},
                                                        {Call::received, "received"},
                                                        {Call::receive_ended, "receive_ended"},
                                                        {Call::link_failed, "link_failed"}};
  const std::vector<std::pair<End, std::string>> ends{{&LinkedUsers::dialler, "the dialler's "},
                                                      {&LinkedUsers::acceptor, "the acceptor's "}};
  for (const auto& [end, whose] : ends)
    for (const auto& [call, name] : calls)
      cases.push_back({"destruction inside " + whose + name,
                       [where = call, which = end](NetworkPair& pair) { destruction_inside(where, which, pair); }});
  return cases;
}

}  // namespace ringlet::conformance
