#include <cstdint>
#include <cstdlib>
#include <deque>

#include "sim/sim_network.hpp"
#include "tests/sim/byte_user.hpp"
#include "transport/web/web_front.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr std::string_view kUpgrade =
    "GET /ring HTTP/1.1\r\nHost: ring:1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

web::PageBundle page() {
  const auto text = std::as_bytes(std::span(std::string_view("<p>page</p>")));
  std::vector<web::PackedFile> files;
  files.push_back({"/index.html", "text/html", {text.begin(), text.end()}, {}});
  return web::PageBundle::unpack(web::PageBundle::pack(files)).value();
}

}  // namespace

// The input is what a browser sends: HTTP, or, where the first byte is odd, bytes through a WebSocket. Whatever it is, the connection ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  SimWorld world(SimOptions{.seed = 1, .paths = PathOptions::calm()});
  SimNode& client_node = world.add_node();
  SimNode& server_node = world.add_node();
  std::deque<ByteUser> web_sockets;
  web::WebOptions options;
  options.web_socket.max_message_bytes = 4096;
  web::WebFront front(server_node.loop(), page(), options,
                      [&](std::unique_ptr<Link> link) { web_sockets.emplace_back().use(std::move(link)); });
  auto listener =
      server_node.network().listen({server_node.host(), 0}, [&](std::unique_ptr<Link> link) { front.receive(std::move(link), {}); });
  ByteUser client;
  client_node.network().dial(listener.value()->address(), Duration::seconds(10),
                             [&](Result<std::unique_ptr<Link>> link) { client.use(std::move(link).value()); });
  if (world.run_until([&] { return client.link != nullptr; }) != RunEnd::done) std::abort();
  const auto say = [&](ConstBytes bytes) {
    client.outgoing.insert(client.outgoing.end(), bytes.begin(), bytes.end());
    client.link->wake();
  };
  if (data[0] % 2 == 1) {
    say(std::as_bytes(std::span(kUpgrade)));
    if (world.run_until([&] { return !web_sockets.empty(); }) != RunEnd::done) std::abort();
  }
  say(std::as_bytes(std::span(data + 1, size - 1)));
  client.link->finish_sending();
  if (world.run_until([&] { return client.ended || client.failure || !web_sockets.empty(); }) != RunEnd::done) std::abort();
  world.run_for(Duration::seconds(60));
  if (data[0] % 2 == 1 && !(web_sockets.front().ended || web_sockets.front().failure)) std::abort();
  return 0;
}
