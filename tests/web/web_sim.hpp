#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <string>

#include "sim/sim_network.hpp"
#include "tests/sim/byte_user.hpp"
#include "transport/web/web_front.hpp"

namespace ringlet::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
inline std::string text_of(ConstBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Returns a page of "/index.html", which also has a gzip form, "/core.wasm" of 200,000 bytes, which has none, and one of an
/// odd name.
inline web::PageBundle small_page() {
  std::vector<web::PackedFile> files;
  files.push_back({"/index.html", "text/html; charset=utf-8", bytes_of("<p>plain</p>"), bytes_of("zipped")});
  files.push_back({"/core.wasm", "application/wasm", std::vector<std::byte>(200'000, std::byte{7}), {}});
  files.push_back({"/gr\u00fcn 100%.txt", "text/plain", bytes_of("named"), {}});
  auto page = web::PageBundle::unpack(web::PageBundle::pack(files));
  REQUIRE(page.ok());
  return std::move(page).value();
}

inline std::string upgrade_request(const std::string& more = "") {
  return "GET /ring HTTP/1.1\r\nHost: ring:1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         more + "\r\n";
}

/// Returns a masked frame as a client sends it.
inline std::string frame(unsigned first_byte, std::string_view payload) {
  const std::string key = "\x11\xf2\x07\xa8";
  std::string bytes(1, static_cast<char>(first_byte));
  const std::size_t length_bytes = payload.size() < 126 ? 0 : payload.size() < 65536 ? 2 : 8;
  bytes += static_cast<char>(0x80U | (length_bytes == 0 ? payload.size() : length_bytes == 2 ? 126 : 127));
  for (std::size_t i = length_bytes; i-- > 0;) bytes += static_cast<char>(payload.size() >> (8 * i));
  bytes += key;
  for (std::size_t i = 0; i < payload.size(); ++i) bytes += static_cast<char>(payload[i] ^ key[i % 4]);
  return bytes;
}
inline constexpr unsigned kBinary = 0x82, kText = 0x81, kClose = 0x88, kPing = 0x89, kPong = 0x8a;

/// Returns an unmasked frame of at most 125 bytes, as a server sends it.
inline std::string server_frame(unsigned first_byte, std::string_view payload) {
  return std::string{static_cast<char>(first_byte), static_cast<char>(payload.size())}.append(payload);
}
inline std::string close_payload(unsigned code, std::string_view reason = "") {
  return std::string{static_cast<char>(code >> 8), static_cast<char>(code & 0xffU)}.append(reason);
}

/// A front on one node, and a client on the other that sends any bytes. The members are destroyed before the world.
struct WebSim {
  SimWorld world;
  SimNode& client_node = world.add_node();
  SimNode& server_node = world.add_node();
  std::deque<ByteUser> web_sockets;
  web::WebFront front;
  std::unique_ptr<Listener> listener;
  std::deque<ByteUser> clients;

  explicit WebSim(std::uint64_t seed = 1, const web::WebOptions& options = {}, const PathOptions& paths = PathOptions::calm())
      : world(SimOptions{.seed = seed, .paths = paths}),
        front(server_node.loop(), small_page(), options,
              [this](std::unique_ptr<Link> link) { web_sockets.emplace_back().use(std::move(link)); }) {
    auto opened =
        server_node.network().listen({server_node.host(), 0}, [this](std::unique_ptr<Link> link) { front.receive(std::move(link), {}); });
    listener = std::move(opened).value();
  }

  ByteUser& connect() { return connect_from(client_node); }
  ByteUser& connect_from(SimNode& node) {
    ByteUser& user = clients.emplace_back();
    node.network().dial(listener->address(), Duration::seconds(10), [&user](Result<std::unique_ptr<Link>> link) {
      REQUIRE(link.ok());
      user.use(std::move(link).value());
    });
    REQUIRE(world.run_until([&user] { return user.link != nullptr; }) == RunEnd::done);
    return user;
  }
  static void say(ByteUser& user, std::string_view text) {
    const auto bytes = bytes_of(text);
    user.outgoing.insert(user.outgoing.end(), bytes.begin(), bytes.end());
    user.link->wake();
  }
  static std::string heard(const ByteUser& user) { return text_of(user.incoming); }
  /// Runs until the client has received `text`; returns false where it does not within 100 s.
  bool hears(const ByteUser& user, std::string_view text) {
    return world.run_until([&] { return heard(user).find(text) != std::string::npos; }, {.time = Duration::seconds(100)}) == RunEnd::done;
  }
  /// Sends one request on a connection of its own, and returns everything that comes until the server ends it.
  std::string ask(std::string_view request) {
    ByteUser& user = connect();
    say(user, request);
    REQUIRE(world.run_until([&user] { return user.ended || user.failure; }) == RunEnd::done);
    user.link.reset();
    return heard(user);
  }
  /// The client's end and the server's of a WebSocket.
  struct Socket {
    ByteUser& client;
    ByteUser& server;
  };
  Socket open_socket() {
    ByteUser& user = connect();
    say(user, upgrade_request());
    const std::size_t count = web_sockets.size();
    REQUIRE(world.run_until([&] { return web_sockets.size() > count && heard(user).find("\r\n\r\n") != std::string::npos; }) ==
            RunEnd::done);
    user.incoming.clear();
    return {user, web_sockets.back()};
  }
};

}  // namespace ringlet::test
