#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/handshake.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/test_authenticator.hpp"
#include "tests/sim/byte_user.hpp"

namespace ringlet::test {

inline const LinkRequest kRequest{LinkRequest::Kind::relay, 3, 0xfffffffeu, 0x0123456789abcdefu};

/// Passes bytes on between two links as they come, so that a test can look at them and change them.
class Wiretap {
 public:
  struct Way final : LinkUser {
    Wiretap* tap = nullptr;
    Way* other = nullptr;
    std::unique_ptr<Link> link;
    std::vector<std::byte> seen;  // what this end has received
    std::vector<std::byte> outgoing;
    std::size_t sent_bytes = 0;
    std::array<std::byte, 1> byte{};
    Bytes room{byte};
    ConstBytes part;

    std::span<const ConstBytes> to_send() override {
      part = ConstBytes(outgoing).subspan(sent_bytes);
      return {&part, part.empty() ? 0u : 1u};
    }
    void sent(std::size_t bytes) override { sent_bytes += bytes; }
    std::span<const Bytes> to_receive() override { return {&room, 1}; }
    void received(std::size_t) override {
      const std::size_t at = seen.size();
      seen.push_back(byte[0]);
      other->outgoing.push_back(tap->change ? tap->change(this == &tap->from_dialler, at, byte[0]) : byte[0]);
      if (other->link) other->link->wake();
    }
    void receive_ended() override {
      if (other->link) other->link->finish_sending();
    }
    void link_failed(const Status&) override { other->link.reset(); }
  };

  std::function<std::byte(bool from_dialler, std::size_t at, std::byte byte)> change;
  Way from_dialler, from_acceptor;

  Wiretap() {
    from_dialler.tap = from_acceptor.tap = this;
    from_dialler.other = &from_acceptor;
    from_acceptor.other = &from_dialler;
  }
};

/// A dialler and an acceptor, each with its own setting, and a tap between them.
struct Two {
  SimWorld world;
  SimNode& dialling = world.add_node();
  SimNode& accepting = world.add_node();
  SimNode& between = world.add_node();
  TestAuthenticator dialler_authenticator, acceptor_authenticator;
  Dialler dialler{dialling.loop(), dialling.network(), dialler_authenticator};
  Wiretap tap;
  std::unique_ptr<Listener> listener, tap_listener;
  std::unique_ptr<AcceptHandshake> handshake;
  std::optional<LinkRequest> request;
  std::optional<Status> dialled, accepted;
  ByteUser dialler_user, acceptor_user;
  LinkRequest wanted = kRequest;
  bool accept = true;

  Two(std::uint64_t seed, const PathOptions& paths, const std::string& token, const std::string& other_token, bool encrypts = false)
      : Two(seed, paths, token, other_token, encrypts, encrypts) {}
  Two(std::uint64_t seed, const PathOptions& paths, const std::string& token, const std::string& other_token, bool encrypts,
      bool other_encrypts)
      : world({.seed = seed, .paths = paths}),
        dialler_authenticator(seed, token, encrypts),
        acceptor_authenticator(seed + 1, other_token, other_encrypts) {
    listener = std::move(accepting.network().listen({accepting.host(), 0}, [this](std::unique_ptr<Link> link) {
                 handshake = std::make_unique<AcceptHandshake>(
                     accepting.loop(), std::move(link), ConstBytes{}, acceptor_authenticator,
                     [this](const LinkRequest& asked) {
                       request = asked;
                       if (accept) handshake->accept();
                     },
                     [this](Result<std::unique_ptr<Link>> outcome) {
                       accepted = outcome.status();
                       if (outcome.ok()) acceptor_user.use(std::move(outcome).value());
                     });
               })).value();
    tap_listener = std::move(between.network().listen({between.host(), 0}, [this](std::unique_ptr<Link> link) {
                     tap.from_dialler.link = std::move(link);
                     between.network().dial(listener->address(), Duration::seconds(5), [this](Result<std::unique_ptr<Link>> onward) {
                       tap.from_acceptor.link = std::move(onward).value();
                       tap.from_acceptor.link->start(tap.from_acceptor);
                       tap.from_dialler.link->start(tap.from_dialler);
                     });
                   })).value();
  }
  void dial(const Address& address) {
    dialler.dial(address, DialTimes{}, wanted, [this](Result<std::unique_ptr<Link>> outcome) {
      dialled = outcome.status();
      if (outcome.ok()) dialler_user.use(std::move(outcome).value());
    });
  }
  void run() { world.run_until_idle({.time = Duration::seconds(60)}); }
};

}  // namespace ringlet::test
