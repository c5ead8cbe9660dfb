#include "tests/conformance/suite_user.hpp"
#include "tests/core/seeds.hpp"
#include "tests/local/sim_pair.hpp"
#include "tests/secure/secure_network.hpp"
#include "tests/transport/uv_pair.hpp"

using namespace ringlet;
using namespace ringlet::test;
using conformance::LinkedUsers;

namespace {

/// Every other seed has AES-256-GCM, and every third replaces keys all the time.
SecureSetup setup_of(std::uint64_t seed) {
  SecureSetup setup;
  if (seed % 2 == 0) setup.suite = CipherSuite::aes256_gcm;
  if (seed % 3 == 0) setup.limits = {.records = 1 + seed % 4, .bytes = 5000};
  return setup;
}

void run_all(std::uint64_t seed, const PathOptions& paths) {
  CAPTURE(seed);
  for (const auto& test : secure_link_cases()) {
    INFO(test.name);
    SimPair inner(seed, paths);
    SecurePair pair(inner, setup_of(seed));
    test.run(pair);
  }
}

}  // namespace

TEST_CASE("an encrypted link is a link") {
  for (const auto& test : secure_link_cases()) {
    DYNAMIC_SECTION(test.name) {
      SimPair inner(0, PathOptions::calm());
      SecurePair pair(inner);
      test.run(pair);
    }
  }
}

TEST_CASE("an encrypted link is a link on wires that differ, split and stall") {
  PathOptions paths;
  paths.stall_per_mille = 5;
  paths.stall.most = Duration::milliseconds(5);
  for (std::uint64_t seed = 1; seed <= share_of(10); ++seed) run_all(seed, paths);
}

TEST_CASE("an encrypted link is a link over small buffers") {
  PathOptions paths;
  paths.send_buffer_bytes = paths.receive_buffer_bytes = {50, 2000};
  paths.latency = {{}, Duration::microseconds(2)};
  for (std::uint64_t seed = 100; seed < 100 + share_of(10); ++seed) run_all(seed, paths);
}

TEST_CASE("an encrypted link over TCP is a link") {
  for (const auto& test : secure_link_cases()) {
    DYNAMIC_SECTION(test.name) {
      UvPair inner;
      SecurePair pair(inner, {.suite = CipherSuite::aes256_gcm});
      test.run(pair);
    }
  }
}

TEST_CASE("bytes survive their sender's destruction, which is no orderly end") {
  SimPair inner(0, PathOptions::calm());
  SecurePair pair(inner);
  LinkedUsers users(pair);
  users.dialler.send(900);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_sent == 900; }));
  users.dialler.link.reset();
  REQUIRE(pair.drive([&] { return users.acceptor.closed_by_peer(); }));
  CHECK(users.acceptor.bytes_received == 900);
  REQUIRE(users.acceptor.link_failed_calls == 1);
  CHECK(users.acceptor.failure->code() == Errc::peer_lost);
}

TEST_CASE("who stands between two that have no room for each other's bytes still wakes them") {
  SimPair inner(1, PathOptions::calm());
  SecurePair pair(inner);
  LinkedUsers users(pair);
  for (auto* user : {&users.dialler, &users.acceptor}) {
    user->receive_limit = 100;
    user->send(3'000'000);
  }
  conformance::settle(pair);
  for (auto* user : {&users.dialler, &users.acceptor}) CHECK(user->bytes_received == 100);
  // Bytes that wait inside the links must be delivered, though neither link's socket takes or gives any.
  for (auto* user : {&users.dialler, &users.acceptor}) user->receive_limit = 900;
  users.dialler.wake();
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 900; }));
  CHECK(users.acceptor.bytes_received == 100);
  for (auto* user : {&users.dialler, &users.acceptor}) user->receive_limit = SIZE_MAX;
  for (auto* user : {&users.dialler, &users.acceptor}) user->wake();
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 3'000'000 && users.acceptor.bytes_received == 3'000'000; }));
}
