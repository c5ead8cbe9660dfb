#include "tools/prediction/network_text.hpp"

#include <catch2/catch.hpp>

using namespace ringlet;
using namespace ringlet::prediction;
using Catch::Matchers::Contains;

namespace {

using Rates = std::vector<double>;

std::string mistake_in_links(std::string_view text, Rates rates = {}) {
  const Status status = apply_links(text, rates);
  CHECK(status.code() == Errc::invalid_argument);
  return status.text();
}

}  // namespace

TEST_CASE("counts, times and rates are read with their units") {
  CHECK(parse_count("100M").value() == 100'000'000);
  CHECK(parse_count("1.5b").value() == 1'500'000'000);
  CHECK(parse_count("0.35k").value() == 350);
  CHECK(parse_count("124000000").value() == 124'000'000);
  CHECK(parse_nanoseconds("0.5s").value() == 5e8);
  CHECK(parse_nanoseconds("0.5").value() == 5e8);
  CHECK(parse_nanoseconds("80us").value() == 8e4);
  CHECK(parse_nanoseconds("250MS").value() == 2.5e8);
  CHECK(parse_nanoseconds("0").value() == 0);
  for (const char* text : {"", "M", ".", "1.2.3", "-5", "+5", "1e9", "100X", "100 M", "0x10", "nan", "123456789012345678901234567890"}) {
    CAPTURE(text);
    CHECK_THAT(parse_count(text).status().text(), Contains("'" + std::string(text) + "'"));
    CHECK_THAT(parse_nanoseconds(text).status().text(), Contains("'" + std::string(text) + "'"));
  }
  CHECK_THAT(parse_count("0").status().text(), Contains("out of range"));
  CHECK_THAT(parse_count("11T").status().text(), Contains("out of range"));
  CHECK_THAT(parse_nanoseconds("86401s").status().text(), Contains("a day at most"));
}

TEST_CASE("a network is a list of equal lines") {
  CHECK(parse_network("4x1gbit").value() == Rates{1e9, 1e9, 1e9, 1e9});
  CHECK(parse_network("2x1Gbit,1x250mbit,1x800kbit").value() == Rates{1e9, 1e9, 2.5e8, 8e5});
  for (const char* text : {"", "4", "x1gbit", "0x1gbit", "4x", "4x1", "4xfast", "4x1gbit,", "4x0gbit", "2000x1gbit", "-4x1gbit"}) {
    CAPTURE(text);
    CHECK(parse_network(text).status().code() == Errc::invalid_argument);
  }
  CHECK_THAT(parse_network("1x1gbit").status().text(), Contains("1 line; give 2 to 1024"));
  CHECK_THAT(parse_network("1000x1gbit,25x1mbit").status().text(), Contains("1025 lines"));
}

TEST_CASE("links change single lines of a network, or are one themselves") {
  Rates rates{1e9, 1e9, 1e9};
  CHECK(apply_links("2:250mbit,0:2.5gbit", rates).ok());
  CHECK(rates == Rates{2.5e9, 1e9, 2.5e8});
  Rates from_nothing;
  CHECK(apply_links("0:1gbit,3:250mbit", from_nothing).ok());
  CHECK(from_nothing == Rates{1e9, 1e9, 1e9, 2.5e8});
  CHECK_THAT(mistake_in_links("3:1gbit", rates), Contains("of 3 lines the last is 2"));
  CHECK_THAT(mistake_in_links("1:1gbit"), Contains("begin with 0"));
  CHECK_THAT(mistake_in_links("0:1gbit"), Contains("one machine has nobody to talk to"));
  CHECK_THAT(mistake_in_links("0:1gbit,2:1gbit,1:1gbit"), Contains("'1:1gbit' comes after 2"));
  CHECK_THAT(mistake_in_links("0:1gbit,2"), Contains("'2' is no link"));
  CHECK_THAT(mistake_in_links("0:1gbit,x:1gbit"), Contains("'x:1gbit' is no link"));
  CHECK_THAT(mistake_in_links("0:1gbit,2:fast"), Contains("'fast' is no rate"));
}

TEST_CASE("a line of 1 Gbit/s carries 117.7 MB of payload in a second") {
  const std::vector<PortCost> ports = network_of_rates({1e9, 2.5e8}, 70'000).value().ports;
  CHECK(1e3 / ports[0].per_byte_out == Approx(117.7).epsilon(0.001));
  CHECK(ports[1].per_byte_in == Approx(4 * ports[0].per_byte_in));
  CHECK(ports[0].latency + ports[0].per_frame == 70'000);
  const PortCost instant = network_of_rates({1e9, 1e9}, 0).value().ports[0];
  CHECK(instant.latency + instant.per_frame == 0);
}

TEST_CASE("machines may have several ranks each, which share a line") {
  const RankNetwork network = network_of_rates({1e9, 2.5e8}, 70'000, 2).value();
  CHECK(network.machines == std::vector<int>{0, 0, 1, 1});
  CHECK(network.ports[1].per_byte_out == network.ports[0].per_byte_out);
  CHECK(network.ports[2].per_byte_out == Approx(4 * network.ports[0].per_byte_out));
  CHECK(network.within.per_byte_out == 0.25);
  CHECK(network_of_rates({1e9, 2.5e8}, 70'000).value().machines.empty());
  CHECK_THAT(network_of_rates(Rates(600, 1e9), 70'000, 2).status().text(), Contains("600 machines with 2 ranks each"));
}
