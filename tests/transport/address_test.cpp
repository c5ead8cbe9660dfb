#include <catch2/catch.hpp>

#include "core/base/address.hpp"

using ringlet::Address;
using ringlet::Errc;
using ringlet::is_loopback;
using ringlet::parse_address;

TEST_CASE("an address survives the way through its text") {
  const auto text = GENERATE(as<std::string>{}, "10.0.0.7:5000", "host:5000", "my-host.local:1", "a_b:65535", "localhost:0", "[::1]:5000",
                             "[::]:0", "[fe80::1%eth0]:5000", "[2001:db8:0:0:1:2:3:4]:80", "[::ffff:10.0.0.1]:9", "[1::]:9");
  CAPTURE(text);
  const auto address = parse_address(text);
  REQUIRE(address.ok());
  CHECK(to_string(address.value()) == text);
}

TEST_CASE("the parts of an address are taken apart") {
  CHECK(parse_address("[fe80::1%eth0]:5000").value() == Address{"fe80::1%eth0", 5000});
  CHECK(parse_address("10.0.0.7:65535").value() == Address{"10.0.0.7", 65535});
}

TEST_CASE("what is no address is refused with the text and the reason") {
  const auto [text, reason] = GENERATE(table<std::string, std::string>({
      {"", "it is empty"},
      {"host", "it has no port"},
      {"[::1]", "it has no port"},
      {"[::1", "the bracket is not closed"},
      {"[::1]5000", "a colon and the port must follow"},
      {"[10.0.0.1]:5000", "there is no IPv6 address between the brackets"},
      {"[host]:5000", "there is no IPv6 address between the brackets"},
      {"[::1%]:5000", "there is no IPv6 address between the brackets"},
      {"[1:2:3:4:5:6:7]:5000", "there is no IPv6 address between the brackets"},
      {"[1:2:3:4:5:6:7:8:9]:5000", "there is no IPv6 address between the brackets"},
      {"[1::2::3]:5000", "there is no IPv6 address between the brackets"},
      {"[1:2:3:4:5:6:7:]:5000", "there is no IPv6 address between the brackets"},
      {"[::12345]:5000", "there is no IPv6 address between the brackets"},
      {"[:::]:5000", "there is no IPv6 address between the brackets"},
      {"[1.2.3.4::]:5000", "there is no IPv6 address between the brackets"},
      {"[]:5000", "there is no IPv6 address between the brackets"},
      {"::1:5000", "several colons"},
      {"fe80::1", "several colons"},
      {"tcp://host:5000", "several colons"},
      {":5000", "neither a host name nor an IPv4 address"},
      {"my host:5000", "neither a host name nor an IPv4 address"},
      {"10.0.0.256:5000", "neither a host name nor an IPv4 address"},
      {"10.0.0:5000", "neither a host name nor an IPv4 address"},
      {"10.0.0.01:5000", "neither a host name nor an IPv4 address"},
      {"10.0.0.1.2:5000", "neither a host name nor an IPv4 address"},
      {"host:", "\"\" is not a port"},
      {"host:65536", "\"65536\" is not a port"},
      {"host:99999999999999999999", "is not a port"},
      {"host:-1", "\"-1\" is not a port"},
      {"host:+1", "\"+1\" is not a port"},
      {"host: 1", "\" 1\" is not a port"},
      {"host:080", "\"080\" is not a port"},
      {"host:80x", "\"80x\" is not a port"},
  }));
  CAPTURE(text);
  const auto status = parse_address(text).status();
  CHECK(status.code() == Errc::invalid_argument);
  CHECK_THAT(status.text(), Catch::Contains("\"" + text + "\"") && Catch::Contains(reason));
}

TEST_CASE("an overlong host name is refused") {
  CHECK(parse_address(std::string(253, 'a') + ":1").ok());
  CHECK_FALSE(parse_address(std::string(254, 'a') + ":1").ok());
}

TEST_CASE("loopback addresses are told from others") {
  const auto host = GENERATE(as<std::string>{}, "127.0.0.1", "127.255.0.3", "::1", "localhost");
  CAPTURE(host);
  CHECK(is_loopback({host, 1}));
  const auto other = GENERATE(as<std::string>{}, "128.0.0.1", "127.evil.example", "0.0.0.0", "::", "localhost.example", "10.127.0.1", "");
  CAPTURE(other);
  CHECK_FALSE(is_loopback({other, 1}));
}
