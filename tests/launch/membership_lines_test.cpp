#include <catch2/catch.hpp>
#include <string>

#include "native/status/status_report.hpp"
#include "tools/launch/membership_lines.hpp"

using namespace ringlet;
using launch::MembershipLines;

TEST_CASE("what a rank says of its group comes out as it went in, in pieces of any size") {
  native::GroupState state{3, 0xfedcba9876543210u, 1, 4, "127.0.0.1:4000", native::GroupChange{{0, 2}, "lost rank 0", 1, {1'500'000}}};
  const std::string line = native::membership_report(state);
  state.change.reset();
  const std::string text = line + native::membership_report(state);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
    MembershipLines lines;
    std::vector<job::Membership> found;
    for (std::size_t at = 0; at < text.size(); at += piece)
      for (job::Membership& one : lines.feed(std::string_view(text).substr(at, piece))) found.push_back(std::move(one));
    REQUIRE(found.size() == 2);
    CHECK(found[0] == job::Membership{0, 3, 0xfedcba9876543210u, 4, "127.0.0.1:4000", 1, {0, 2}, "lost rank 0", 1'500});
    CHECK(found[1] == job::Membership{0, 3, 0xfedcba9876543210u, 4, "127.0.0.1:4000"});
  }
}

TEST_CASE("the rank whose loss has ended a group is kept, the last one of several") {
  MembershipLines lines;
  CHECK_FALSE(lines.lost());
  CHECK(lines.feed(native::loss_report(3) + "{\"ended_by_loss_of\":-1}\n{\"ended_by_loss_of\":100000}\n").empty());
  CHECK(lines.lost() == 3);
  CHECK(lines.feed(native::membership_report({1, 0, 0, 2, "door:1"}) + native::loss_report(0)).size() == 1);
  CHECK(lines.lost() == 0);
}

TEST_CASE("lines that are something else, or too long, are skipped") {
  MembershipLines lines;
  const std::string good = native::membership_report({1, 0, 0, 2, "door:1"});
  for (const std::string& bad : {std::string("x"), std::string("{}"), std::string("[1]"), std::string(100'000, ' '),
                                 std::string(R"({"epoch":-1,"lineage":1,"size":"2","door":null,"change":null})"), std::string()})
    CHECK(lines.feed(bad + "\n" + good).size() == 1);
}
