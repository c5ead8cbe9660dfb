#include <catch2/catch.hpp>

#include "tests/transport/loopback.hpp"
#include "tools/datagrams/uv_datagrams.hpp"
#include "transport/uv/interface_list.hpp"

using namespace ringlet;
using namespace ringlet::test;
using uv::ListedInterface;

namespace {

struct Ear final : DatagramUser {
  void datagram_came(const DatagramSource& from, ConstBytes bytes) override {
    heard.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    sources.push_back(from);
    if (on_datagram) on_datagram(from);
  }
  void interfaces_changed() override {}
  std::vector<std::string> heard;
  std::vector<DatagramSource> sources;
  std::function<void(const DatagramSource&)> on_datagram;
};

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

ListedInterface listed(const std::string& name, bool loopback = false) {
  const std::array bytes{std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(name.size())};
  return {name, 1, loopback, {*IpAddress::from_bytes(bytes)}};
}

std::string names(const std::vector<ListedInterface>& chosen) {
  std::string text;
  for (const auto& one : chosen) text += one.name + " ";
  return text;
}

}  // namespace

TEST_CASE("uv datagrams: a named peer is sent to, and answers") {
  UvLoop loop;
  UvDatagrams listening(loop, {.port = 0, .interfaces = {"none"}});
  Ear listener;
  listening.start(listener);
  REQUIRE(listening.status().ok());
  REQUIRE(listening.shared_port() != 0);
  CHECK(listening.interfaces().empty());
  listener.on_datagram = [&](const DatagramSource& from) { listening.answer(from, bytes_of("answer")); };

  UvDatagrams asking(loop,
                     {.port = 0, .hears_shared_port = false, .peers = {{"localhost", listening.shared_port()}}, .interfaces = {"none"}});
  Ear asker;
  asking.start(asker);
  CHECK(asking.shared_port() == 0);
  asking.send_to_all(bytes_of("nobody hears this"));
  asking.send_to_peers(bytes_of("question"));
  REQUIRE(drive(loop, [&] { return !asker.heard.empty(); }));
  CHECK(listener.heard.front() == "question");
  CHECK(asker.heard.front() == "answer");
  CHECK(asker.sources.front().port == listening.shared_port());
  CHECK(asker.sources.front().address.is_loopback());
}

TEST_CASE("uv datagrams: nothing is called after stop, which a call may cause") {
  UvLoop loop;
  UvDatagrams listening(loop, {.port = 0, .interfaces = {"none"}});
  Ear listener;
  listening.start(listener);
  listener.on_datagram = [&](const DatagramSource&) { listening.stop(); };
  UvDatagrams sending(loop,
                      {.port = 0, .hears_shared_port = false, .peers = {{"127.0.0.1", listening.shared_port()}}, .interfaces = {"none"}});
  Ear sender;
  sending.start(sender);
  for (int i = 0; i < 10; ++i) sending.send_to_peers(bytes_of("x"));
  REQUIRE(drive(loop, [&] { return !listener.heard.empty(); }));
  settle(loop);
  CHECK(listener.heard.size() == 1);
  listening.answer(listener.sources.front(), bytes_of("too late"));
  listening.send_to_all(bytes_of("too late"));
  sending.stop();
}

TEST_CASE("uv datagrams: a name that nobody knows is no failure") {
  UvLoop loop;
  UvDatagrams sending(loop, {.port = 0, .peers = {{"no-such-host.invalid", 9}}, .interfaces = {"none"}});
  Ear user;
  sending.start(user);
  sending.send_to_peers(bytes_of("x"));
  settle(loop);
  CHECK(sending.status().ok());
}

TEST_CASE("interfaces that lead inside are left out, the loopback unless it is alone or asked for") {
  const auto lo = listed("lo", true);
  const auto choose = [](std::vector<ListedInterface> all, std::vector<std::string> wanted = {}) {
    return names(uv::choose_interfaces(std::move(all), wanted));
  };
  CHECK(choose({lo, listed("eth0"), listed("docker0"), listed("br-1a2b"), listed("veth7"), listed("virbr0"), listed("wlan0")}) ==
        "eth0 wlan0 ");
  CHECK(choose({lo, listed("docker0")}) == "lo ");
  CHECK(choose({lo, listed("eth0"), listed("docker0")}, {"docker0", "lo"}) == "lo docker0 ");
  CHECK(choose({lo, listed("eth0")}, {"eth9"}).empty());
  CHECK(choose({lo, listed("eth0"), listed("eth1"), listed("docker0")}, {"!eth0"}) == "eth1 ");
  CHECK(choose({lo, listed("eth0"), listed("eth1")}, {"!eth0", "eth0", "eth1"}) == "eth1 ");
  CHECK(choose({}).empty());
  CHECK(uv::choose_interfaces(std::vector<ListedInterface>(40, listed("eth0")), {}).size() == 16);
  ListedInterface bare = listed("eth1");
  bare.addresses.clear();
  CHECK(choose({lo, bare, listed("eth0")}) == "eth0 ");
}

TEST_CASE("the system's interfaces are listed") {
  for (const ListedInterface& one : uv::list_interfaces()) {
    CHECK_FALSE(one.name.empty());
    CHECK(one.index != 0);
  }
}
