#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "core/rendezvous/handshake.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/test_authenticator.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr std::size_t kHello = kPrefaceBytes + kNonceBytes;
constexpr std::size_t kFromDialler = kHello + kRequestBytes + sizeof(Proof);
constexpr std::size_t kFromAcceptor = kHello + sizeof(Proof);

void require(bool held) {
  if (!held) std::abort();
}

/// The bytes that one side has sent and received. They are outside of its link, which the side may destroy.
struct Side {
  class Pipe final : public Link {
   public:
    explicit Pipe(Side& side) : side_(side) { side_.pipe = this; }
    ~Pipe() override { side_.pipe = nullptr; }
    void start(LinkUser& next) override { side_.user = &next; }
    void wake() override {}
    void finish_sending() override {}
    std::string peer_name() const override { return "peer"; }

   private:
    Side& side_;
  };

  Pipe* pipe = nullptr;
  LinkUser* user = nullptr;
  std::vector<std::byte> said, heard;
  std::optional<Result<std::unique_ptr<Link>>> outcome;

  bool listens() const { return pipe != nullptr && !outcome; }
  void speak() {
    while (listens()) {
      const auto parts = user->to_send();
      if (parts.empty() || parts[0].empty()) return;
      said.insert(said.end(), parts[0].begin(), parts[0].end());
      user->sent(parts[0].size());
    }
  }
  /// Receives as many of the bytes as this side takes.
  void hear(ConstBytes bytes) {
    while (listens() && !bytes.empty()) {
      const auto room = user->to_receive();
      if (room.empty() || room[0].empty()) return;
      const std::size_t count = std::min(room[0].size(), bytes.size());
      std::copy_n(bytes.begin(), count, room[0].begin());
      heard.insert(heard.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      user->received(count);
      speak();
    }
  }
  void end() {
    if (listens()) user->receive_ended();
  }
};

/// A dialler and an acceptor that know the same token or different ones, and whoever is between them.
struct Talk {
  SimWorld world{1};
  EventLoop& loop = world.add_node().loop();
  TestAuthenticator dialler_authenticator, acceptor_authenticator;
  Side dialler, acceptor;
  std::optional<AcceptHandshake> accepting;
  std::optional<DialHandshake> dialling;

  explicit Talk(const char* token) : dialler_authenticator(1, token, true), acceptor_authenticator(2, "token", true) {}
  void dial() {
    dialling.emplace(loop, std::make_unique<Side::Pipe>(dialler), dialler_authenticator, LinkRequest{LinkRequest::Kind::relay, 3, 4, 5},
                     [this](Result<std::unique_ptr<Link>> link) { dialler.outcome = std::move(link); });
    dialler.speak();
  }
  void accept() {
    accepting.emplace(
        loop, std::make_unique<Side::Pipe>(acceptor), ConstBytes(), acceptor_authenticator,
        [this](const LinkRequest&) { accepting->accept(); },
        [this](Result<std::unique_ptr<Link>> link) { acceptor.outcome = std::move(link); });
    acceptor.speak();
  }
  ~Talk() {
    dialling.reset();
    accepting.reset();
  }
};

bool went_well(const Side& side) { return side.outcome && side.outcome->ok(); }

bool same(const std::vector<std::byte>& one, const std::vector<std::byte>& other, std::size_t bytes) {
  return one.size() >= bytes && other.size() >= bytes &&
         std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(bytes), other.begin());
}

/// Passes bytes on in one direction. Two bytes of the script say whether the next ones pass, are changed, left out, doubled, or added to.
void pass_on(Side& from, Side& to, std::size_t& passed, ConstBytes& script) {
  while (passed < from.said.size() && to.listens()) {
    if (script.size() < 2) {
      to.hear(ConstBytes(from.said).subspan(passed));
      passed = from.said.size();
      return;
    }
    const unsigned what = std::to_integer<unsigned>(script[0]) % 8;
    const std::size_t count = std::min<std::size_t>(from.said.size() - passed, 1U + (std::to_integer<unsigned>(script[0]) >> 3));
    std::vector<std::byte> part(from.said.begin() + static_cast<std::ptrdiff_t>(passed),
                                from.said.begin() + static_cast<std::ptrdiff_t>(passed + count));
    passed += count;
    if (what == 4) part[0] ^= script[1];
    if (what == 5) part.clear();
    if (what == 6) part.insert(part.end(), part.begin(), part.end());
    if (what == 7) part.insert(part.begin(), script[1]);
    script = script.subspan(2);
    to.hear(part);
  }
}

void sit_between(ConstBytes script) {
  Talk talk("token");
  talk.accept();
  talk.dial();
  std::size_t from_dialler = 0, from_acceptor = 0;
  for (int turn = 0; turn < 8; ++turn) {
    pass_on(talk.dialler, talk.acceptor, from_dialler, script);
    pass_on(talk.acceptor, talk.dialler, from_acceptor, script);
  }
  talk.dialler.end();
  talk.acceptor.end();
  const auto& [d, a] = std::tie(talk.dialler, talk.acceptor);
  // A side whose handshake succeeded has received what the other has sent.
  if (went_well(a)) require(same(a.heard, d.said, kFromDialler) && same(d.heard, a.said, kHello));
  if (went_well(d)) require(same(d.heard, a.said, kFromAcceptor) && same(a.heard, d.said, kFromDialler));
}

}  // namespace

// The first byte says who is attacked: the acceptor, the dialler, or both by somebody between them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ConstBytes script = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] % 3 == 2) {
    sit_between(script);
    return 0;
  }
  Talk talk("token");
  const bool dials = data[0] % 3 == 1;
  if (dials) talk.dial();
  if (!dials) talk.accept();
  Side& side = dials ? talk.dialler : talk.acceptor;
  side.hear(script);
  side.end();
  require(!went_well(side));
  require(side.said.size() <= kFromDialler);
  return 0;
}
