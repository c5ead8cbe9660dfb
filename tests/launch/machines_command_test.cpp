#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

class MachinesHome {
 public:
  Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "machines");
    return run_command(std::move(arguments), {{"XDG_CONFIG_HOME", directory_.path()}});
  }
  Json list() const { return Json::parse(run({"--json", "--group", "home"}).out); }
  std::string file(const std::string& name) const { return directory_.path() + "/ringlet/" + name; }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("machines are shown, added, renamed and removed") {
  const MachinesHome home, there;
  const Json empty = home.list();
  CHECK(empty["group"] == "home");
  CHECK(empty["machines"].empty());
  const std::string own = empty["own"]["fingerprint"], key = there.list()["own"]["key"], shown = there.list()["own"]["fingerprint"];
  CHECK_THAT(home.run({}).out, Contains(own) && Contains(empty["own"]["key"].get<std::string>()) && Contains("no other machine is known"));

  const Outcome added = home.run({"add", "attic", key, "--group", "home"});
  CHECK(added.exit_code == 0);
  CHECK_THAT(added.out, Contains("attic") && Contains(shown));
  CHECK_THAT(home.run({}).out, Contains("attic") && Contains(shown) && Contains("added"));
  CHECK(home.run({"--group", "office", "--json"}).out.find("attic") == std::string::npos);
  const Outcome other = home.run({"add", "attic", empty["own"]["key"]});
  CHECK(other.exit_code == 1);
  CHECK_THAT(other.err, Contains("--replace"));

  const Outcome renamed = home.run({"rename", "attic", "the roof", "--json"});
  CHECK(renamed.exit_code == 0);
  CHECK(Json::parse(renamed.out)["new_name"] == "the roof");
  const Outcome removed = home.run({"remove", "the roof", "--json"});
  CHECK(removed.exit_code == 0);
  CHECK(Json::parse(removed.out)["fingerprint"] == shown);
  const Json list = home.list();
  REQUIRE(list["machines"].size() == 1);
  CHECK(list["machines"][0] == Json{{"name", "the roof"}, {"fingerprint", shown}, {"key", key}, {"trust", "removed"}});
  const Outcome again = home.run({"remove", "the roof"});
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.err, Contains("no machine 'the roof' is known in group home"));
}

TEST_CASE("mistakes of machines are told, exit code 2") {
  const MachinesHome home;
  const std::string key(64, 'a');
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"--group", "../x"},
                                                                     {"list"},
                                                                     {"add", "attic"},
                                                                     {"add", "attic", "1234"},
                                                                     {"add", "", key},
                                                                     {"add", "a\nb", key},
                                                                     {"rename", "attic"},
                                                                     {"rename", "attic", ""},
                                                                     {"remove"},
                                                                     {"remove", "attic", "--group", ""}}) {
    const Outcome outcome = home.run(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("ringlet machines"));
  }
  CHECK_THAT(home.run({"--help"}).out, Contains("Example:\n  ringlet machines") && Contains("Exit codes"));
}
