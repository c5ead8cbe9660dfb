#include "tests/web/web_sim.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

const std::string kHost = "Host: ring:1\r\n";
const std::string kLast = "Connection: close\r\n\r\n";

struct Exchange {
  std::string request;
  std::string status;
};

std::string header_of(const std::string& answer, const std::string& name) {
  const auto begin = answer.find("\r\n" + name + ": ");
  if (begin == std::string::npos) return "";
  const auto value = begin + name.size() + 4;
  return answer.substr(value, answer.find("\r\n", value) - value);
}

}  // namespace

TEST_CASE("each request gets its status") {
  const std::vector<Exchange> exchanges{
      {"GET / HTTP/1.1\r\n" + kHost + kLast, "200 OK"},
      {"GET /?x=1 HTTP/1.1\r\n" + kHost + kLast, "200 OK"},
      {"GET /index.html HTTP/1.0\r\n\r\n", "200 OK"},
      {"\r\n\r\nGET / HTTP/1.1\r\n" + kHost + kLast, "200 OK"},
      {"GET /nothing HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /../index.html HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET //index.html HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /%69ndex.html HTTP/1.1\r\n" + kHost + kLast, "200 OK"},
      {"GET /gr%C3%BCn%20100%25.txt?x=%20 HTTP/1.1\r\n" + kHost + kLast, "200 OK"},
      {"GET /gr%c3%bcn%20100%.txt HTTP/1.1\r\n" + kHost + kLast, "200 OK"},
      {"GET /gr%FCn%20100%25.txt HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /gr%25C3%25BCn%2520100%25.txt HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /%2e%2e/index.html HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /index.html% HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /index.html%0 HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /./index.html HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /index.html%00.png HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"GET /index.html/ HTTP/1.1\r\n" + kHost + kLast, "404 Not Found"},
      {"DELETE / HTTP/1.1\r\n" + kHost + kLast, "405 Method Not Allowed"},
      {"OPTIONS / HTTP/1.1\r\n" + kHost + kLast, "405 Method Not Allowed"},
      {"POST / HTTP/1.1\r\n" + kHost + "Content-Length: 5\r\n\r\nabcde", "413 Payload Too Large"},
      {"GET / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "413 Payload Too Large"},
      {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\r\n" + kHost + kHost + "\r\n", "400 Bad Request"},
      {"GET http://ring:1/ HTTP/1.1\r\n" + kHost + "\r\n", "400 Bad Request"},
      {"OPTIONS * HTTP/1.1\r\n" + kHost + "\r\n", "400 Bad Request"},
      {"CONNECT ring:1 HTTP/1.1\r\n" + kHost + "\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\r\nHo st: ring\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\r\n" + kHost + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\r\n" + kHost + "Content-Length: -1\r\n\r\n", "400 Bad Request"},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), "400 Bad Request"},
      {"HELLO\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/2.0\r\n" + kHost + "\r\n", "505 HTTP Version Not Supported"},
      {"GET / HTTP/1.2\r\n" + kHost + "\r\n", "505 HTTP Version Not Supported"},
      {"GET / HTTP/1.1\r\n" + kHost + "X: " + std::string(9000, 'x'), "431 Request Header Fields Too Large"},
      {"GET /" + std::string(9000, 'x'), "431 Request Header Fields Too Large"},
      {std::string(9000, '\n'), "431 Request Header Fields Too Large"},
  };
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 5));
  WebSim sim(seed, {}, seed == 0 ? PathOptions::calm() : PathOptions{});
  for (const Exchange& exchange : exchanges) {
    CAPTURE(seed, exchange.request);
    const std::string answer = sim.ask(exchange.request);
    CHECK_THAT(answer, StartsWith("HTTP/1.1 " + exchange.status + "\r\n"));
    CHECK(header_of(answer, "X-Content-Type-Options") == "nosniff");
    CHECK(header_of(answer, "Connection") == "close");
    if (exchange.status != "200 OK") {
      CHECK(header_of(answer, "Cache-Control") == "no-store");
      CHECK(header_of(answer, "Content-Length") == "0");
      CHECK_THAT(answer, EndsWith("\r\n\r\n"));
    }
    if (exchange.status.find("405") == 0) CHECK(header_of(answer, "Allow") == "GET, HEAD");
  }
  CHECK(sim.world.run_until_idle() == RunEnd::idle);
  CHECK(sim.front.connection_count() == 0);
}

TEST_CASE("files come with their type, length, tag and policy") {
  WebSim sim;
  const std::string plain = sim.ask("GET / HTTP/1.1\r\n" + kHost + kLast);
  CHECK_THAT(plain, EndsWith("\r\n\r\n<p>plain</p>"));
  CHECK(header_of(plain, "Content-Type") == "text/html; charset=utf-8");
  CHECK(header_of(plain, "Content-Length") == "12");
  CHECK(header_of(plain, "Cache-Control") == "no-cache");
  CHECK(header_of(plain, "Vary") == "Accept-Encoding");
  CHECK(header_of(plain, "Content-Encoding").empty());
  const std::string policy = header_of(plain, "Content-Security-Policy");
  for (const char* rule :
       {"default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "connect-src 'self' ws:", "frame-ancestors 'none'"})
    CHECK_THAT(policy, Contains(rule));
  CHECK_THAT(policy, !Contains("'unsafe-inline'") && !Contains("'unsafe-eval'"));

  const std::string zipped = sim.ask("GET / HTTP/1.1\r\nAccept-Encoding: br, GZIP\r\n" + kHost + kLast);
  CHECK_THAT(zipped, EndsWith("\r\n\r\nzipped"));
  CHECK(header_of(zipped, "Content-Encoding") == "gzip");
  CHECK(header_of(zipped, "Content-Length") == "6");
  const std::string tag = header_of(zipped, "ETag");
  CHECK(tag != header_of(plain, "ETag"));
  CHECK_THAT(sim.ask("GET / HTTP/1.1\r\nAccept-Encoding: gzip;q=0\r\n" + kHost + kLast), EndsWith("<p>plain</p>"));

  const std::string unchanged =
      sim.ask("GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\nIf-None-Match: \"x\", W/" + tag + "\r\n" + kHost + kLast);
  CHECK_THAT(unchanged, StartsWith("HTTP/1.1 304 Not Modified\r\n") && EndsWith("\r\n\r\n"));
  CHECK(header_of(unchanged, "ETag") == tag);
  CHECK_THAT(sim.ask("GET / HTTP/1.1\r\nIf-None-Match: " + tag + "\r\n" + kHost + kLast), StartsWith("HTTP/1.1 200 "));

  const std::string head = sim.ask("HEAD /core.wasm HTTP/1.1\r\n" + kHost + kLast);
  CHECK(header_of(head, "Content-Length") == "200000");
  CHECK(header_of(head, "Content-Type") == "application/wasm");
  CHECK_THAT(head, EndsWith("\r\n\r\n"));
  const std::string wasm = sim.ask("GET /core.wasm HTTP/1.1\r\nAccept-Encoding: gzip\r\n" + kHost + kLast);
  CHECK(wasm.size() - wasm.find("\r\n\r\n") == 4 + 200'000);
}

TEST_CASE("a connection serves requests one after the other, however they come") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 10));
  CAPTURE(seed);
  WebSim sim(seed, {}, PathOptions{});
  std::string requests;
  for (const char* path : {"/", "/core.wasm", "/nothing", "/index.html"})
    requests += "GET " + std::string(path) + " HTTP/1.1\r\n" + kHost + "\r\n";
  const std::string heard = sim.ask(requests + "GET / HTTP/1.1\r\n" + kHost + kLast + "GET / HTTP/1.1\r\n" + kHost + "\r\n");
  std::size_t answers = 0;
  for (auto at = heard.find("HTTP/1.1 "); at != std::string::npos; at = heard.find("HTTP/1.1 ", at + 1)) ++answers;
  CHECK(answers == 5);
  CHECK(heard.size() > 200'000);
  CHECK_THAT(heard, EndsWith("<p>plain</p>"));
}

TEST_CASE("who takes too long is dropped") {
  WebSim sim;
  ByteUser& silent = sim.connect();
  ByteUser& slow = sim.connect();
  ByteUser& idle = sim.connect();
  ByteUser& greedy = sim.connect();
  WebSim::say(idle, "GET / HTTP/1.1\r\n" + kHost + "\r\n");
  // This client sends one byte a second, and never ends its request.
  const std::string loris = "GET / HTTP/1.1\r\n" + kHost + "X-Header: " + std::string(100, 'x');
  std::function<void(std::size_t)> drip = [&](std::size_t at) {
    if (slow.ended || slow.failure) return;
    WebSim::say(slow, loris.substr(at, 1));
    sim.client_node.loop().after(Duration::seconds(1), [&drip, at] { drip(at + 1); });
  };
  drip(0);
  const auto begin = sim.world.now();
  // This client asks, but does not read.
  greedy.link->wake();
  for (int count = 0; count < 3; ++count) WebSim::say(greedy, "GET /core.wasm HTTP/1.1\r\n" + kHost + "\r\n");
  REQUIRE(sim.hears(idle, "plain"));
  REQUIRE(sim.world.run_until([&] { return silent.ended && (slow.ended || slow.failure) && idle.ended; }) == RunEnd::done);
  CHECK((sim.world.now() - begin) < Duration::seconds(12));
  REQUIRE(sim.world.run_until([&] { return sim.front.connection_count() == 0; }) == RunEnd::done);
}

TEST_CASE("with too many connections the oldest goes") {
  web::WebOptions options;
  options.max_connections = 3;
  WebSim sim(1, options);
  std::vector<ByteUser*> users;
  for (int count = 0; count < 5; ++count) users.push_back(&sim.connect());
  sim.world.run_for(Duration::seconds(1));
  CHECK(sim.front.connection_count() == 3);
  CHECK((users[0]->ended && users[1]->ended && !users[2]->ended));
  WebSim::say(*users[4], "GET / HTTP/1.1\r\n" + kHost + "\r\n");
  CHECK(sim.hears(*users[4], "plain"));
}

TEST_CASE("a host that opens connections without end keeps no other one from the page") {
  web::WebOptions options;
  options.max_connections = 4;
  WebSim sim(1, options);
  ByteUser& reader = sim.connect();
  SimNode& other = sim.world.add_node();
  std::vector<ByteUser*> many;
  for (int count = 0; count < 9; ++count) many.push_back(&sim.connect_from(other));
  sim.world.run_for(Duration::seconds(1));
  CHECK(sim.front.connection_count() == 4);
  CHECK((!reader.ended && many[5]->ended && !many[6]->ended));
  WebSim::say(reader, "GET / HTTP/1.1\r\n" + kHost + "\r\n");
  CHECK(sim.hears(reader, "plain"));
}

TEST_CASE("an upgrade needs its headers, and an origin that may") {
  const std::vector<Exchange> refused{
      {"GET /ring HTTP/1.1\r\n" + kHost + "\r\n", "426 Upgrade Required"},
      {"GET /ring HTTP/1.1\r\n" + kHost + "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "426 Upgrade Required"},
      {"POST /ring HTTP/1.1\r\n" + kHost + "\r\n", "405 Method Not Allowed"},
      {upgrade_request("Sec-WebSocket-Version: 13\r\n"), "426 Upgrade Required"},
      {upgrade_request("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "400 Bad Request"},
      {upgrade_request("Origin: http://evil.example\r\n"), "403 Forbidden"},
      {upgrade_request("Origin: http://ring:2\r\n"), "403 Forbidden"},
      {upgrade_request("Origin: null\r\n"), "403 Forbidden"},
      {upgrade_request("Origin: \r\n"), "403 Forbidden"},
      {upgrade_request("Origin: ftp://ring:1\r\n"), "403 Forbidden"},
      {upgrade_request("Origin: http://ring:1.evil.example\r\n"), "403 Forbidden"},
      {upgrade_request("Origin: http://ring:1\r\nOrigin: http://evil.example\r\n"), "400 Bad Request"},
      {upgrade_request() + "\x82", "400 Bad Request"},
  };
  web::WebOptions options;
  options.upgrade.allowed_origins = {"http://friend.example"};
  WebSim sim(1, options);
  for (const Exchange& exchange : refused) {
    CAPTURE(exchange.request);
    CHECK_THAT(sim.ask(exchange.request), StartsWith("HTTP/1.1 " + exchange.status + "\r\n"));
  }
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string request = upgrade_request();
    return request.replace(request.find(from), from.size(), to);
  };
  CHECK_THAT(sim.ask(replaced("Version: 13", "Version: 8")),
             StartsWith("HTTP/1.1 426 ") && Contains("\r\nSec-WebSocket-Version: 13\r\n") && Contains("\r\nUpgrade: websocket\r\n"));
  CHECK_THAT(sim.ask(replaced("GET /ring", "GET /other")), StartsWith("HTTP/1.1 404 "));
  CHECK_THAT(sim.ask(replaced("HTTP/1.1", "HTTP/1.0")), StartsWith("HTTP/1.1 426 "));
  for (const char* key : {"", "c2hvcnQ=", "dGhlIHNhbXBsZSBub25jZQ=a", "dGhlIHNhbXBsZSBub25jZQ!!", "dGhlIHNhbXBsZSBub25jZSBpcyBsb25nZXI="})
    CHECK_THAT(sim.ask(replaced("dGhlIHNhbXBsZSBub25jZQ==", key)), StartsWith("HTTP/1.1 400 "));
  CHECK(sim.web_sockets.empty());

  for (const char* origin : {"", "Origin: http://ring:1\r\n", "Origin: https://ring:1\r\n", "Origin: http://friend.example\r\n"}) {
    ByteUser& user = sim.connect();
    WebSim::say(user, upgrade_request(origin));
    REQUIRE(sim.hears(user, "\r\n\r\n"));
    CHECK_THAT(WebSim::heard(user), StartsWith("HTTP/1.1 101 Switching Protocols\r\n") &&
                                        Contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  }
  CHECK(sim.web_sockets.size() == 4);

  // The other ranks accept the page of rank 0's port, whatever the machine was called there.
  web::UpgradeRules rules;
  rules.page_port = 7000;
  const auto status_for = [&rules](const std::string& origin) {
    web::RequestParser parser(8192);
    const std::string text = upgrade_request("Origin: " + origin + "\r\n");
    ConstBytes input = std::as_bytes(std::span(text));
    REQUIRE(parser.feed(input) == web::RequestParser::State::complete);
    return web::answer_request(parser.request(), {}, rules).status;
  };
  for (const char* origin : {"http://10.0.0.1:7000", "http://box.local:7000", "http://[fe80::1]:7000"}) CHECK(status_for(origin) == 101);
  for (const char* origin : {"http://10.0.0.1:7001", "http://10.0.0.1", "http://10.0.0.1:17000", "7000", "ws://a:7000", "http://"})
    CHECK(status_for(origin) == 403);
  CHECK(sim.front.connection_count() == 0);
}

TEST_CASE("each origin that is refused is told once, as long as there are few, and nothing that no browser sends") {
  std::vector<std::string> told;
  web::WebOptions options;
  options.on_refused_origin = [&told](const std::string& origin) { told.push_back(origin); };
  WebSim sim(1, options);
  const auto refused = [&sim](const std::string& origin) {
    CHECK_THAT(sim.ask(upgrade_request("Origin: " + origin + "\r\n")), StartsWith("HTTP/1.1 403 "));
  };
  refused("http://10.0.0.1:5173");
  refused("null");
  refused("http://10.0.0.1:5173");
  refused("http://a;reboot");
  refused("http://" + std::string(300, 'a'));
  sim.ask(upgrade_request("Origin: http://other.example\r\nOrigin: http://another.example\r\n"));
  CHECK(told == std::vector<std::string>{"http://10.0.0.1:5173", "null"});
  for (int port = 1; port <= 20; ++port) refused("http://10.0.0.2:" + std::to_string(port));
  CHECK(told.size() == 8);
  CHECK(told.back() == "http://10.0.0.2:6");
}

TEST_CASE("without a token a page joins only from a name that is known to be this machine's or rank 0's") {
  web::UpgradeRules rules;
  rules.page_port = 7000;
  rules.page_hosts = {"desk", "desk.local"};
  const auto status_for = [&rules](const std::string& host, const std::string& origin) {
    std::string text = upgrade_request("Origin: http://" + origin + "\r\n");
    text.replace(text.find(kHost), kHost.size(), "Host: " + host + "\r\n");
    web::RequestParser parser(8192);
    ConstBytes input = std::as_bytes(std::span(text));
    REQUIRE(parser.feed(input) == web::RequestParser::State::complete);
    return web::answer_request(parser.request(), {}, rules).status;
  };
  for (const char* host : {"127.0.0.1:5", "localhost:5", "[::1]:5", "DESK:5", "desk.local:5", "desk", "192.168.1.7:5", "[fe80::1]:5"})
    CHECK(status_for(host, host) == 101);
  for (const char* origin : {"127.0.0.1:7000", "localhost:7000", "desk.local:7000"}) CHECK(status_for("127.0.0.1:5", origin) == 101);
  // A name of the attacker's that was pointed at this machine after its page was loaded, and pages of other machines.
  for (const char* host : {"evil.example:5", "evil.example:7000", "desk.evil.example:5", "127.0.0.1.evil.example:5", "1.evil:5", ":5"})
    CHECK(status_for(host, host) == 403);
  for (const char* origin : {"evil.example:7000", "192.168.1.66:7000", "[fe80::66]:7000"}) CHECK(status_for("127.0.0.1:5", origin) == 403);
  rules.allowed_origins = {"http://evil.example:5"};
  CHECK(status_for("evil.example:5", "evil.example:5") == 101);
  rules.page_hosts.reset();
  CHECK(status_for("other.example:5", "other.example:5") == 101);
}

TEST_CASE("bytes that were read before the front got the connection count") {
  WebSim sim;
  std::unique_ptr<Link> accepted;
  auto listener = sim.server_node.network().listen(
      {sim.server_node.host(), 0}, [&](std::unique_ptr<Link> link) { sim.front.receive(std::move(link), bytes_of("GET ")); });
  REQUIRE(listener.ok());
  ByteUser user;
  sim.client_node.network().dial(listener.value()->address(), Duration::seconds(1),
                                 [&](Result<std::unique_ptr<Link>> link) { user.use(std::move(link).value()); });
  REQUIRE(sim.world.run_until([&] { return user.link != nullptr; }) == RunEnd::done);
  WebSim::say(user, "/ HTTP/1.1\r\n" + kHost + "\r\n");
  CHECK(sim.hears(user, "plain"));
}

TEST_CASE("a damaged bundle is refused with what is wrong") {
  const std::vector<web::PackedFile> files{{"/a", "text/plain", bytes_of("abc"), {}}, {"/b", "text/plain", bytes_of("d"), bytes_of("z")}};
  const auto packed = web::PageBundle::pack(files);
  REQUIRE(web::PageBundle::unpack(packed).ok());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const auto result = web::PageBundle::unpack({packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)});
    CHECK_THAT(result.status().text(), StartsWith("the page bundle is damaged: "));
  }
  auto longer = packed;
  longer.push_back(std::byte{0});
  CHECK_THAT(web::PageBundle::unpack(longer).status().text(), Contains("goes on after its last file"));
  for (std::size_t index = 0; index < packed.size(); ++index) {
    auto changed = packed;
    changed[index] ^= std::byte{0xff};
    static_cast<void>(web::PageBundle::unpack(changed).ok());
  }
  auto twice = files;
  twice[1].path = "/a";
  CHECK_THAT(web::PageBundle::unpack(web::PageBundle::pack(twice)).status().text(), Contains("/a is in it twice"));
  twice[1].path = "b";
  CHECK_FALSE(web::PageBundle::unpack(web::PageBundle::pack(twice)).ok());
  twice[1] = {"/b", "text/plain\r\nX: y", {}, {}};
  CHECK_FALSE(web::PageBundle::unpack(web::PageBundle::pack(twice)).ok());
}
