// Measures how much memory a member that breaks or stretches the rules can make a real rank take.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/rendezvous/dialler.hpp"
#include "tests/campaign.hpp"
#include "tests/core/victim.hpp"
#include "tests/native/memory_in_use.hpp"
#include "tests/native/ranks.hpp"
#include "tests/shared_by_processes.hpp"
#include "tests/sim/byte_user.hpp"
#include "transport/crypto/strong_token.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr char kToken[] = "a token of this test alone";
constexpr std::size_t kBoundBytes = 64u << 20;

/// What the honest rank's process leaves behind, in memory that the test shares.
struct Report {
  std::size_t taken;
  bool met, failed;
};

/// Rank 0, which calls nothing until the other end of `attacked` is closed, so that all that comes is early.
[[noreturn]] void be_honest(const LoopbackSocket& coordinator, int attacked, Report& report) {
  ::alarm(30);
  ::signal(SIGABRT, SIG_DFL);
  InitOptions options;
  options.listen_fd = coordinator.descriptor;
  options.rank = 0;
  options.world_size = 2;
  options.coordinator = to_string(coordinator.address);
  options.token = kToken;
  options.status = false;
  options.parts = PartsPolicy::even;  // as the other one says that it is set
  try {
    Group group = init(options);
    forget_most_memory_in_use();
    const std::size_t before = memory_in_use();
    report.met = true;
    for (char none = 0; ::read(attacked, &none, 1) > 0;) continue;
    try {
      group.barrier({.timeout = std::chrono::milliseconds(100)});
    } catch (const Error&) {
      report.failed = true;
    }
    report.taken = most_memory_in_use() - before;
  } catch (const Error& error) {
    std::fprintf(stderr, "rank 0: %s\n", error.what());
  }
  ::_exit(0);
}

/// Joins as rank 1 and sends all of `bytes`, then `again` over and over, until the other end closes or 2.5 s have passed. Closes `attacked`
/// after 2 s, or at its end.
void be_hostile(const LoopbackSocket& coordinator, int attacked, const Values& bytes, const Values& again) {
  UvLoop loop;
  UvNetwork network(loop);
  TokenAuthenticator authenticator(strong_token(kToken), true);
  Dialler dialler(loop, network, authenticator);
  ByteUser user;
  user.outgoing = bytes;
  bool over = false;
  dialler.dial(coordinator.address, {}, {.kind = LinkRequest::Kind::link, .from = 1, .to = 0}, [&](Result<std::unique_ptr<Link>> link) {
    if (!link.ok()) return void(over = true);
    user.use(std::move(link).value());
    user.link->wake();
  });
  bool has_attacked = false;
  const auto tell = [&] {
    if (!std::exchange(has_attacked, true)) ::close(attacked);
  };
  loop.after(Duration::seconds(2), tell);
  loop.after(Duration::milliseconds(2'500), [&over] { over = true; });
  while (!over && !user.ended && !user.failure) {
    user.incoming.clear();
    if (user.sent_bytes == user.outgoing.size() && !again.empty()) {
      user.outgoing = again;
      user.sent_bytes = 0;
      user.link->wake();
      loop.flush();
    }
    loop.wait();
  }
  tell();
}

struct Attack {
  const char* name;
  Script script;
  Script again;
};

std::vector<Attack> attacks() {
  const Call small = sum_of(10, Algorithm::exchange);
  const Script joined = Script().join();
  Script calls = joined, data = joined, offers = joined, questions, heartbeats;
  for (std::uint16_t stream = 1; stream < 1'024; ++stream) {
    data.call(0, small, stream).data(0, 0, 7 << 10, 0, stream);
    for (std::uint64_t i = 0; i < 15; ++i) calls.call(i, small, stream);
    for (std::uint64_t i = 0; i < 15; ++i) offers.offer(i, {DType::f32, Shape{5}}, false, stream);
  }
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    questions.control(wire::StateQuestion{static_cast<std::uint32_t>(i), false, 0, 0});
    heartbeats.frame(header_of(FrameKind::heartbeat, 0));
  }
  Script flood = joined;
  flood.call(50, sum_of(1 << 22, Algorithm::exchange));
  for (int i = 0; i < 40; ++i) flood.data(50, 0, 1 << 20, static_cast<std::size_t>(i) << 20);
  return {{"data of 1,023 streams", data, {}},
          {"calls of 1,023 streams", calls, {}},
          {"offers of 1,023 streams", offers, {}},
          {"questions without end", joined, questions},
          {"heartbeats without end", joined, heartbeats},
          {"40 MiB before their call", flood, {}}};
}

}  // namespace

TEST_CASE("whatever a member sends, an honest rank takes less than 64 MiB for it") {
  Campaign campaign("a member makes a rank keep what it sends: below 64 MiB");
  std::size_t most = 0;
  for (const Attack& attack : attacks()) {
    CAPTURE(attack.name);
    campaign.begin();
    const LoopbackSocket coordinator = open_loopback_socket();
    SharedByProcesses<Report> shared;
    Report& report = *shared;
    std::array<int, 2> attacked{};
    REQUIRE(::pipe(attacked.data()) == 0);
    const ::pid_t honest = ::fork();
    if (honest == 0) {
      ::close(attacked[1]);
      be_honest(coordinator, attacked[0], report);
    }
    ::close(coordinator.descriptor);
    ::close(attacked[0]);
    be_hostile(coordinator, attacked[1], attack.script.bytes(), attack.again.bytes());
    int status = 0;
    REQUIRE(::waitpid(honest, &status, 0) == honest);
    CHECK(WIFEXITED(status));
    CHECK(report.met);
    std::printf("%s: %.1f MiB more, %s\n", attack.name, static_cast<double>(report.taken) / (1 << 20),
                report.failed ? "the world ended" : "went on");
    CHECK(report.taken < kBoundBytes);
    if (report.met && WIFEXITED(status) && report.taken < kBoundBytes) campaign.goes_well();
    most = std::max(most, report.taken);
  }
  // What is early within its bounds is kept, so a measurement that sees nothing is wrong.
  CHECK(most > 1 << 20);
}
