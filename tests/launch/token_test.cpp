#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

class Home {
 public:
  Outcome run(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), "token");
    CommandProcess process(std::move(arguments), {{"XDG_CONFIG_HOME", directory_.path()}});
    process.write_stdin(input);
    process.close_stdin();
    return process.finish();
  }
  std::string file(const std::string& group) const { return directory_.path() + "/ringlet/tokens/" + group; }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a token is saved, shown, and kept") {
  const Home home;
  const Outcome missing = home.run({"--show", "--group", "attic"});
  CHECK(missing.exit_code == 1);
  CHECK_THAT(missing.err, Contains("no token is saved for group attic") && Contains("ringlet token --save --group attic"));

  const Outcome saved = home.run({"--save", "--group", "attic"});
  CHECK(saved.exit_code == 0);
  CHECK_THAT(saved.out, Contains(home.file("attic")));
  const Outcome shown = home.run({"--show", "--group", "attic"});
  CHECK(shown.out.size() == 35);
  CHECK(shown.out == read_file(home.file("attic")));
  CHECK_THAT(saved.out, !Contains(shown.out.substr(0, 34)));
  const Json json = Json::parse(home.run({"--show", "--group", "attic", "--json"}).out);
  CHECK(json["token"] == shown.out.substr(0, 34));
  CHECK(json["group"] == "attic");
  CHECK(json["path"] == home.file("attic"));

  const Outcome again = home.run({"--save", "--group", "attic"});
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.err, Contains("--replace"));
  CHECK(home.run({"--show", "--group", "attic"}).out == shown.out);
  CHECK(home.run({"--save", "--group", "attic", "--replace"}).exit_code == 0);
  CHECK(home.run({"--show", "--group", "attic"}).out != shown.out);
}

TEST_CASE("a token from elsewhere is saved by stdin") {
  const Home home;
  const Outcome saved = home.run({"--save", "--stdin", "--json"}, "a token that a person made up\n");
  CHECK(saved.exit_code == 0);
  CHECK(Json::parse(saved.out)["path"] == home.file("home"));
  CHECK(home.run({"--show"}).out == "zm97-z3hp-9gdv-c1fa-614w-t611-zqs3\n");
  const Outcome endless = home.run({"--save", "--stdin", "--group", "other"}, std::string(66'000, 'x'));
  CHECK(endless.exit_code == 1);
  CHECK_THAT(endless.err, Contains("stdin has more than 65536 bytes, which no token has"));
  const Outcome refused = home.run({"--save", "--stdin", "--group", "other"}, "short\n");
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Contains("5 characters"));
}

TEST_CASE("mistakes of token are told, exit code 2") {
  const Home home;
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--save", "--show"}, {"--stdin"}, {"--replace"}, {"--save", "--group", "../x"}, {"--save", "--group", ""}, {"extra"}}) {
    CAPTURE(arguments);
    CHECK(home.run(arguments).exit_code == 2);
  }
  CHECK_THAT(home.run({"--save", "--group", "../x"}).err, Contains("--group '../x'"));
  CHECK_THAT(home.run({"--help"}).out, Contains("Example:\n  ringlet token"));
  CHECK(Json::parse(home.run({"--json"}).out)["token"].get<std::string>().size() == 34);
}
