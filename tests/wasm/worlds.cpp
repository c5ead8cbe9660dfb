// Exports for tests of the browser's loop and links without a meeting: the ranks are given, and the links are dialled one by one.
#include <algorithm>

#include "core/rendezvous/key_schedule.hpp"
#include "wasm/cpp/browser_authenticator.hpp"
#include "wasm/cpp/browser_world.hpp"
#include "wasm/cpp/export.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;
using browser::registry;

/// Makes a world of `size` ranks, in which this is number `rank`, and returns its handle.
RINGLET_EXPORT int32_t test_world(int32_t rank, int32_t size, int32_t timeout_ms) {
  WorldOptions options = browser::world_options();
  options.rank = rank;
  options.size = size;
  options.operation_timeout = Duration::milliseconds(timeout_ms);
  const int32_t handle = registry().add_world();
  registry().find_world(handle)->make_core(options);
  return handle;
}

/// Dials the server that stands for the link with `peer`. Completes when the world has the link.
RINGLET_EXPORT void test_dial(int32_t ticket, int32_t world, int32_t peer, int32_t port) {
  browser::BrowserWorld* const found = registry().find_world(world);
  found->network().dial(
      {"127.0.0.1", static_cast<std::uint16_t>(port)}, Duration::seconds(10), [ticket, found, peer](Result<std::unique_ptr<Link>> link) {
        if (link.ok()) {
          struct Nobody final : SessionOwner {
            PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
            void on_session_failed(Session&, const Status&) override {}
            void on_session_ended(Session&) override {}
          };
          static Nobody nobody;
          found->core()->adopt(std::make_unique<Session>(std::move(link).value(), browser::loop(), nobody, SessionOptions{}), peer);
        }
        browser::tell_completed(ticket, link.status());
      });
}

/// Writes the two keys that are derived from a salt and an agreed secret.
RINGLET_EXPORT void test_derive_keys(const std::byte* salt, const std::byte* agreed, std::byte* out) {
  browser::BrowserAuthenticator authenticator("", false);
  Key one, other;
  std::copy_n(salt, one.size(), one.begin());
  std::copy_n(agreed, other.size(), other.begin());
  TrafficKeys keys;
  derive_keys(authenticator, one, other, keys);
  std::copy(keys.from_dialler.begin(), keys.from_dialler.end(), out);
  std::copy(keys.from_acceptor.begin(), keys.from_acceptor.end(), out + keys.from_dialler.size());
}

/// Seals `bytes`, cut in two, with this head of 4 bytes, and opens the result into two parts. Returns 1 where that gives the same bytes.
RINGLET_EXPORT int32_t test_seal(const std::byte* key, double counter, const std::byte* head, const std::byte* content, size_t bytes,
                                 size_t cut, std::byte* sealed) {
  browser::BrowserAuthenticator authenticator("", false);
  Key own;
  std::copy_n(key, own.size(), own.begin());
  const auto cipher = authenticator.make_cipher(CipherSuite::chacha20_poly1305, own);
  const ConstBytes all(content, bytes), associated(head, 4);
  const std::array<ConstBytes, 2> parts{all.first(cut), all.subspan(cut)};
  cipher->seal(static_cast<std::uint64_t>(counter), associated, parts, {sealed, bytes + Cipher::kTagBytes});
  std::vector<std::byte> opened(bytes);
  const std::array<Bytes, 2> places{Bytes(opened).first(cut), Bytes(opened).subspan(cut)};
  const ConstBytes record(sealed, bytes + Cipher::kTagBytes);
  const bool right = cipher->open(static_cast<std::uint64_t>(counter), associated, record, places);
  const bool wrong = cipher->open(static_cast<std::uint64_t>(counter) + 1, associated, record, places);
  return right && !wrong && std::equal(all.begin(), all.end(), opened.begin(), opened.end()) ? 1 : 0;
}

/// Writes the X25519 public key of a secret. Returns 1 where X25519 also refuses the point zero.
RINGLET_EXPORT int32_t test_public_key(const std::byte* secret, std::byte* out) {
  browser::BrowserAuthenticator authenticator("", false);
  Key own;
  std::copy_n(secret, own.size(), own.begin());
  const Key made = authenticator.public_key(own);
  std::copy(made.begin(), made.end(), out);
  return authenticator.agree(own, Key{}) ? 0 : 1;
}
