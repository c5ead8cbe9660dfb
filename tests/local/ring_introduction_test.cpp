#include <unistd.h>

#include <catch2/catch.hpp>
#include <random>

#include "core/wire/frame.hpp"
#include "tests/local/shared_ring_network.hpp"
#include "tests/sim/byte_user.hpp"
#include "tests/transport/loopback.hpp"
#include "transport/local/memory_shortcut.hpp"
#include "transport/local/peer_memory.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::local;

namespace {

constexpr std::size_t kGreeting = 40, kVerdict = 8;
constexpr std::size_t kOfWord = 16;

std::mt19937 challenges{23};

void fill_with_challenge(Bytes out) {
  for (std::byte& byte : out) byte = static_cast<std::byte>(challenges());
}

void append(std::vector<std::byte>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// One end of a connection looks for a shortcut; the other one is an attacker who says anything. Neither reads the other's memory.
struct AttackedIntroduction {
  Pair pair;
  std::unique_ptr<PeerMemory> memory = open_peer_memory();
  MemoryShortcut shortcut{pair.loop, memory.get(), fill_with_challenge, &pair.loop};
  ByteUser attacker;
  ByteUser victim;
  std::string attacker_name;  // of the attacker's end
  std::optional<Status> outcome;
  std::string medium;

  explicit AttackedIntroduction(LinkSide side) {
    auto& own = side == LinkSide::acceptor ? pair.accepted : pair.dialled;
    auto& other = side == LinkSide::acceptor ? pair.dialled : pair.accepted;
    attacker_name = other->own_name();
    attacker.use(std::move(other));
    shortcut.take(std::move(own), side, [this](Result<std::unique_ptr<Link>> taken) {
      outcome = taken.status();
      if (!taken.ok()) return;
      medium = taken.value()->medium();
      victim.use(std::move(taken).value());
    });
  }
  /// Of this process, with a mark that cannot be read.
  void greet(int descriptor, std::size_t ring_bytes = kRingBytes) {
    std::vector<std::byte> greeting;
    append(greeting, static_cast<std::uint64_t>(::getpid()), 8);
    append(greeting, 16, 8);
    for (int i = 0; i < 16; ++i) greeting.push_back(std::byte{0x55});
    append(greeting, static_cast<std::uint64_t>(descriptor + 1), 4);
    append(greeting, ring_bytes, 4);
    say(greeting);
  }
  void say(const std::vector<std::byte>& bytes) {
    attacker.outgoing.insert(attacker.outgoing.end(), bytes.begin(), bytes.end());
    attacker.link->wake();
  }
  void judge(std::uint64_t verdict) {
    std::vector<std::byte> bytes;
    append(bytes, verdict, kVerdict);
    say(bytes);
  }
  void hear(std::size_t bytes) {
    REQUIRE(drive(pair.loop, [&] { return attacker.incoming.size() >= bytes; }));
  }
  MarkWord victims_word() const {
    MarkWord word;
    std::copy_n(attacker.incoming.begin() + kOfWord, word.size(), word.begin());
    return word;
  }
  std::uint64_t victims_verdict() const { return detail::load_le<std::uint64_t>(attacker.incoming.data() + kGreeting); }
};

}  // namespace

TEST_CASE("an acceptor shares only memory that holds its word and the names of this connection") {
  if (!shares_memory()) return;
  AttackedIntroduction attacked(LinkSide::acceptor);
  const auto memory = make_shared_memory(kRingMemoryBytes);
  const auto longer = make_shared_memory(kRingMemoryBytes + 4096);
  enum class Lie { none, word, names, descriptor, size, ring };
  const Lie lie = GENERATE(Lie::none, Lie::word, Lie::names, Lie::descriptor, Lie::size, Lie::ring);
  const int descriptor = lie == Lie::descriptor ? 1'000'000 : lie == Lie::size ? longer->descriptor() : memory->descriptor();
  attacked.greet(descriptor, lie == Lie::ring ? kRingBytes / 2 : kRingBytes);
  attacked.hear(kGreeting);
  RingMemory& rings = ring_memory(*memory);
  rings.acceptor_word = attacked.victims_word();
  if (lie == Lie::word) rings.acceptor_word[5] ^= std::byte{1};
  const std::string ends = attacked.attacker_name + (lie == Lie::names ? "0 " : " ") + attacked.attacker.link->peer_name();
  std::copy(ends.begin(), ends.end(), rings.ends.begin());
  attacked.judge(0);
  attacked.hear(kGreeting + kVerdict);
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.outcome.has_value(); }));
  CHECK(attacked.victims_verdict() == (lie == Lie::none ? 2U : 0U));
  CHECK(attacked.medium == (lie == Lie::none ? "memory" : "tcp"));
  CHECK((rings.dialler_word == MarkWord{}) == (lie != Lie::none));
}

TEST_CASE("a dialler does not believe that its memory was opened") {
  if (!shares_memory()) return;
  AttackedIntroduction attacked(LinkSide::dialler);
  attacked.hear(kGreeting);
  const auto offered = detail::load_le<std::uint32_t>(attacked.attacker.incoming.data() + 32);
  REQUIRE(offered > 0);
  const auto opened = open_shared_memory(static_cast<std::uint64_t>(::getpid()), static_cast<int>(offered - 1), kRingMemoryBytes);
  REQUIRE(opened);
  const bool proves = GENERATE(false, true);
  if (proves) ring_memory(*opened).dialler_word = attacked.victims_word();
  attacked.greet(-1);
  attacked.hear(kGreeting + kVerdict);
  attacked.judge(2);
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.outcome.has_value(); }));
  CHECK(attacked.outcome->code() == (proves ? Errc::ok : Errc::protocol_error));
  CHECK(attacked.medium == (proves ? "memory" : ""));
  // Nobody else can open it from now on.
  CHECK_FALSE(open_shared_memory(static_cast<std::uint64_t>(::getpid()), static_cast<int>(offered - 1), kRingMemoryBytes));
}
