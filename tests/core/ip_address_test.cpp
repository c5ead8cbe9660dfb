#include <arpa/inet.h>

#include <catch2/catch.hpp>

#include "core/base/ip_address.hpp"
#include "sim/sim_random.hpp"

using namespace ringlet;

namespace {

IpAddress parse(const std::string& text) {
  std::array<std::byte, 16> bytes{};
  const bool v4 = text.find(':') == std::string::npos;
  REQUIRE(inet_pton(v4 ? AF_INET : AF_INET6, text.c_str(), bytes.data()) == 1);
  return *IpAddress::from_bytes(ConstBytes(bytes).first(v4 ? 4 : 16));
}

}  // namespace

TEST_CASE("addresses are written as the system writes them") {
  SimRandom random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::array<std::byte, 16> bytes{};
    for (auto& byte : bytes)
      if (random.below(3) == 0) byte = static_cast<std::byte>(random.next());
    bytes[0] = std::byte{0x20};  // none that embeds an IPv4 address
    const bool v4 = random.below(4) == 0;
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
    REQUIRE(to_string(*IpAddress::from_bytes(ConstBytes(bytes).first(v4 ? 4 : 16))) == text.data());
  }
  for (const std::string text : {"::1", "::", "fe80::1", "1::", "0.0.0.0", "1:0:2::3", "2001:db8::1:0:0:1"})
    CHECK(to_string(parse(text)) == text);
  CHECK_FALSE(IpAddress::from_bytes(ConstBytes{}));
}

TEST_CASE("what kind of address it is") {
  for (const char* one : {"10.0.0.1", "127.0.0.1", "fe80::1", "::1", "223.255.255.255", "240.0.0.1"}) CHECK(parse(one).is_unicast());
  for (const char* none : {"0.0.0.0", "255.255.255.255", "224.0.0.1", "239.255.1.1", "::", "ff02::1"})
    CHECK_FALSE(parse(none).is_unicast());
  for (const char* one : {"127.0.0.1", "127.9.9.9", "::1"}) CHECK(parse(one).is_loopback());
  for (const char* none : {"128.0.0.1", "::2", "1::1"}) CHECK_FALSE(parse(none).is_loopback());
  for (const char* one : {"169.254.0.1", "fe80::1", "febf::1"}) CHECK(parse(one).is_link_local());
  for (const char* none : {"169.253.0.1", "fec0::1", "::1"}) CHECK_FALSE(parse(none).is_link_local());
}
