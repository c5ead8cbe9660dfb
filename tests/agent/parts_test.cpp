#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "job.pb.h"
#include "tests/temporary_directory.hpp"
#include "tools/agent/allow_list.hpp"
#include "tools/agent/allowed_variables.hpp"
#include "tools/job/machine_choice.hpp"
#include "tools/job/messages.hpp"

using namespace ringlet;
using namespace ringlet::agent;
using namespace ringlet::job;
using Catch::Matchers::Contains;
using ringlet::test::TemporaryDirectory;

namespace {

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::vector<Message> one_of_each() {
  StartRanks start{0x0123456789abcdefu, 3, 2, 8, "10.0.0.7:4000", "token", "/opt/train"};
  start.arguments = {"--epochs", "", "3"};
  start.environment = {{"COLOUR", "red"}, {"EMPTY", ""}};
  start.directory = "/data";
  start.grace_ms = 5000;
  start.terminal_columns = 80;
  start.preferred_directory = "/home";
  start.has_input = true;
  start.input_rank = 4;
  start.elastic = true;
  start.waits = true;
  start.trace = true;
  return {Hail{1, "0.1.0", "home", "desk", "/opt/train", "/data", std::string(32, '\xfe'), std::string(64, '\0')},
          Offer{1, "0.1.0", "attic", 4, "no", 2, "10.0.0.1", "10.0.0.2", std::string(32, '\xfe'), std::string(64, '\1')},
          BindPort{"0.0.0.0", 5000, 5063},
          PortBound{40123},
          start,
          RanksStarted{{7, 8, 0xffffffffu}},
          Failed{127, "cannot"},
          Output{3, true, std::string("a\0b", 3)},
          Credit{65536, true},
          Exit{3, 1, 9, true, 2, 5},
          Order{15, true, 5000, {3, 4}},
          Over{},
          Beat{},
          EchoRequest{3, std::string("a\0b", 3), 65536},
          Echo{3, 1'700'000'000'000, "x", 47'175},
          PathSurvey{{7, 0xffffffffffffffffu}},
          SurveyedPaths{{SurveyedPath{7, 300'000, 100'000'000, "", 47'175, "timed out"}, SurveyedPath{8, 0, 0, "no answer"}}},
          Notice{"a sentence"},
          Input{std::string("a\0\xff", 3)},
          InputTaken{},
          RestartRanks{{3, 5}, "10.0.0.7:4001", 1, 4, "10.0.0.7:4000"},
          Membership{3, 2, 0x0123456789abcdefu, 3, "10.0.0.7:4001", 1, {0, 2}, "lost rank 0", 1'500},
          TracePiece{3, 1, std::string("a\0b", 3)},
          TraceTaken{true}};
}

void make_program(const std::string& path, ::mode_t mode = 0755) {
  std::ofstream(path) << "#!/bin/sh\n";
  ::chmod(path.c_str(), mode);
}

}  // namespace

TEST_CASE("messages come out as they went in") {
  for (const Message& message : one_of_each()) {
    CAPTURE(message.index());
    CHECK(decode(bytes_of(encode(message))) == message);
  }
}

TEST_CASE("protoc's own classes know every field, and write the same bytes") {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    ringlet_reference::JobMessage reference;
    REQUIRE(reference.ParseFromString(bytes));
    CAPTURE(reference.DebugString());
    reference.DiscardUnknownFields();
    CHECK(reference.SerializeAsString() == bytes);
    CHECK(static_cast<std::size_t>(reference.kind_case()) == message.index() + 1);
  }
  ringlet_reference::JobMessage start;
  REQUIRE(start.ParseFromString(encode(one_of_each()[4])));
  CHECK(start.start_ranks().job() == 0x0123456789abcdefu);
  CHECK(start.start_ranks().first_rank() == 3);
  CHECK(start.start_ranks().ranks() == 2);
  CHECK(start.start_ranks().world_size() == 8);
  CHECK(start.start_ranks().token() == "token");
  CHECK(start.start_ranks().arguments_size() == 3);
  CHECK(start.start_ranks().environment(0).value() == "red");
  CHECK(start.start_ranks().grace_ms() == 5000);
}

TEST_CASE("messages that are cut short or hold too much are none; unknown ones say nothing") {
  for (const Message& message : one_of_each()) {
    const std::string whole = encode(message);
    for (std::size_t length = 1; length < whole.size(); ++length) CHECK_FALSE(decode(bytes_of(whole.substr(0, length))) == message);
  }
  CHECK(decode(bytes_of("\xa2\x06\x01x")) == Message(Beat{}));
  CHECK_FALSE(decode(bytes_of("\x2a\xff\xff\xff\xff\x0f")));
  StartRanks start;
  start.ranks = start.world_size = 1;
  start.arguments.assign(job::kMaxArguments, "x");
  CHECK(decode(bytes_of(encode(start))) == Message(start));
  start.arguments.push_back("x");
  CHECK_FALSE(decode(bytes_of(encode(start))));
  for (const auto& [key, signature] : {std::pair(32, 0), std::pair(0, 64), std::pair(31, 64), std::pair(32, 65)}) {
    Hail hail{1, "", "home", "", "", ""};
    hail.public_key.assign(static_cast<std::size_t>(key), 'k');
    hail.signature.assign(static_cast<std::size_t>(signature), 's');
    CHECK_FALSE(decode(bytes_of(encode(hail))));
    Offer offer{1, "", "attic", 0, "", 0};
    offer.public_key = hail.public_key;
    offer.signature = hail.signature;
    CHECK_FALSE(decode(bytes_of(encode(offer))));
  }
  for (const RestartRanks& bad : {RestartRanks{}, RestartRanks{{3, 3}, "10.0.0.7:4001"}, RestartRanks{{3, 4}, "", 1, 2},
                                  RestartRanks{{3}, "", 0, job::kMaxWorldSize + 1}})
    CHECK_FALSE(decode(bytes_of(encode(bad))));
  TracePiece piece{0, 0, std::string(kMaxTracePieceBytes, 'x')};
  CHECK(decode(bytes_of(encode(piece))) == Message(piece));
  piece.data += 'x';
  CHECK_FALSE(decode(bytes_of(encode(piece))));
  RanksStarted started{std::vector<std::uint32_t>(kMaxRanksPerMachine + 1, 1)};
  CHECK_FALSE(decode(bytes_of(encode(started))));
}

TEST_CASE("texts from another machine cannot steer a terminal") {
  const std::string bad = "a\x1b[31m\n\xc2\x9b\xe2\x80\xae\xff", good = "a?[31m????";
  CHECK(decode(bytes_of(encode(Failed{1, bad}))) == Message(Failed{1, good}));
  CHECK(decode(bytes_of(encode(Notice{bad}))) == Message(Notice{good}));
  CHECK(decode(bytes_of(encode(Offer{1, bad, bad, 4, bad}))) == Message(Offer{1, good, good, 4, good}));
  CHECK(decode(bytes_of(encode(SurveyedPaths{{{7, 0, 0, bad}}}))) == Message(SurveyedPaths{{{7, 0, 0, good}}}));
  CHECK(decode(bytes_of(encode(Output{0, false, bad}))) == Message(Output{0, false, bad}));
}

TEST_CASE("ranks are spread in the machines' order") {
  const std::vector<Place> places{{"a", 4}, {"b", 1}, {"c", 4}};
  const auto spread = [&](int total) { return assign_ranks(places, {total, 1}).value(); };
  CHECK(spread(1) == std::vector<int>{1, 0, 0});
  CHECK(spread(3) == std::vector<int>{1, 1, 1});
  CHECK(spread(5) == std::vector<int>{2, 1, 2});
  CHECK(spread(9) == std::vector<int>{4, 1, 4});
  CHECK_THAT(assign_ranks(places, {10, 1}).status().text(), Contains("10 ranks do not fit: of free ranks a has 4, b has 1, c has 4"));
  CHECK(assign_ranks(places, {std::nullopt, 1}).value() == std::vector<int>{1, 1, 1});
  CHECK_THAT(assign_ranks(places, {std::nullopt, 2}).status().text(), Contains("b has 1 free ranks, and 2 are asked for"));
  CHECK(assign_ranks({}, {std::nullopt, 1}).value().empty());
}

TEST_CASE("a list that is too long is not used, as the line that it would be cut in could allow too much") {
  const TemporaryDirectory directory;
  const std::string root = std::filesystem::canonical(directory.path()).string(), train = root + "/train", list = root + "/allowed";
  make_program(train);
  const std::string last = train + " --epochs 3\n";
  const auto answer_to = [&](std::size_t bytes) {
    std::ofstream(list) << std::string(bytes - last.size() - 1, '#') + '\n' + last;
    const std::vector<std::string> arguments{"--epochs", "3"};
    return AllowList({}, list).ask(train, &arguments);
  };
  CHECK(answer_to(1 << 20).program == train);
  CHECK_THAT(answer_to((1 << 20) + 1).refusal, Contains("the list " + list + " is not used: it is longer than 1048576 bytes"));
}

TEST_CASE("a list that is no file is not waited for") {
  const TemporaryDirectory directory;
  const std::string train = directory.path() + "/train", list = directory.path() + "/allowed";
  make_program(train);
  REQUIRE(::mkfifo(list.c_str(), 0600) == 0);
  CHECK_THAT(AllowList({}, list).ask(train).refusal, Contains("the list " + list + " is not used: it is no regular file"));
}

TEST_CASE("nothing is allowed that was not named") {
  TemporaryDirectory directory;
  const std::string root = std::filesystem::canonical(directory.path()).string();
  const std::string train = root + "/train", other = root + "/other", list = root + "/allowed", tools = root + "/tools";
  make_program(train);
  make_program(other);
  std::filesystem::create_directory(tools);
  make_program(tools + "/tool");
  std::filesystem::create_directory(tools + "/deep");
  make_program(tools + "/deep/tool");

  const AllowList nothing({}, list);
  CHECK(nothing.ask(train).refusal == train + " is not allowed; the machine's owner would have to start `ringlet up` with --allow " +
                                          train + ", or add this line to " + list + " there: " + train);
  CHECK_THAT(nothing.ask("train").refusal, Contains("no absolute path"));
  CHECK_THAT(nothing.ask(root + "/nothing").refusal, Contains("there is no program " + root + "/nothing"));
  CHECK_THAT(nothing.ask(tools).refusal, Contains("there is no program"));

  const AllowList some({train, tools}, "");
  CHECK(some.ask(train).program == train);
  CHECK(some.ask(root + "/tools/../train").program == train);
  CHECK(some.ask(tools + "/tool").program == tools + "/tool");
  CHECK_FALSE(some.ask(tools + "/deep/tool").refusal.empty());
  CHECK_FALSE(some.ask(other).refusal.empty());
  CHECK_FALSE(some.find_mistake());
  CHECK_THAT(AllowList({"train"}, "").find_mistake().value_or(""), Contains("--allow train: give the absolute path"));

  SECTION("the list is read anew, and comments do not count") {
    std::ofstream(list) << "# mine\n\n  " << train << "  \n";
    CHECK(nothing.ask(train).program == train);
    CHECK_FALSE(nothing.ask(other).refusal.empty());
    ::chmod(list.c_str(), 0666);
    CHECK_THAT(nothing.ask(train).refusal, Contains("the list " + list + " is not trusted"));
  }
  SECTION("a symbolic link in an allowed directory leads nowhere else") {
    std::filesystem::create_symlink(other, tools + "/innocent");
    CHECK_THAT(some.ask(tools + "/innocent").refusal, Contains("or add this line") && Contains(": " + other));
    std::filesystem::create_symlink(train, root + "/link");
    CHECK(some.ask(root + "/link").program == train);
  }
  SECTION("what everyone may write could be anyone's") {
    ::chmod(train.c_str(), 0777);
    CHECK_THAT(some.ask(train).refusal, Contains("chmod o-w " + train));
    ::chmod(tools.c_str(), 0777);
    CHECK_FALSE(some.ask(tools + "/tool").refusal.empty());
    ::chmod(train.c_str(), 0755);
    ::chmod(root.c_str(), 0777);
    CHECK_THAT(some.ask(train).refusal, Contains("chmod o-w " + root));
  }
  SECTION("a file that is no program") {
    ::chmod(train.c_str(), 0644);
    CHECK_THAT(some.ask(train).refusal, Contains("is not executable"));
  }
}

TEST_CASE("a link that is allowed is started by its own name") {
  // As the Python of a virtual environment, which finds its packages by the path that it was started by.
  TemporaryDirectory directory;
  const std::string root = std::filesystem::canonical(directory.path()).string();
  const std::string python = root + "/python3", other = root + "/other", bin = root + "/venv", link = bin + "/python";
  const std::string list = root + "/allowed", second = root + "/second", alias = root + "/alias";
  make_program(python);
  make_program(other);
  std::filesystem::create_directory(bin);
  std::filesystem::create_symlink("../python3", link);
  std::filesystem::create_symlink(python, second);
  std::filesystem::create_directory_symlink(bin, alias);
  const auto lead = [](const std::string& from, const std::string& to) {
    std::filesystem::remove(from);
    std::filesystem::create_symlink(to, from);
  };
  const AllowList named({link + " train.py"}, list);
  const std::vector<std::string> train{"train.py"}, more{"other.py"};
  CHECK(named.ask(link).program == link);
  CHECK(named.ask(link, &train).program == link);
  CHECK(named.ask(alias + "/python").program == link);
  CHECK_FALSE(named.ask(link, &more).refusal.empty());
  CHECK(named.ask(python).program == link);  // the owner's word, whoever asks by another name
  CHECK(AllowList({python}, "").ask(link).program == python);
  CHECK(AllowList({bin}, "").ask(link).program.empty());

  SECTION("of several names the one that is asked for") {
    const AllowList both({link, root, second}, "");
    CHECK(both.ask(link).program == link);
    CHECK(both.ask(second).program == second);
  }
  SECTION("a link that leads elsewhere since it was allowed") {
    lead(link, other);
    CHECK(named.ask(link).refusal ==
          link + " is not started: it led to " + python + " when `ringlet up` was started here, and leads to " + other + " now");
    CHECK_FALSE(named.ask(other).refusal.empty());
    lead(link, second);  // another way to the same program
    CHECK(named.ask(link).program == link);
  }
  SECTION("a directory on the way that leads elsewhere since") {
    const AllowList by_alias({alias + "/python"}, "");
    CHECK(by_alias.ask(link).program == link);
    std::filesystem::create_directory(root + "/evil");
    make_program(root + "/evil/python");
    lead(alias, root + "/evil");
    CHECK_FALSE(by_alias.ask(alias + "/python").refusal.empty());
  }
  SECTION("a list is read anew, and so are the links in it") {
    std::ofstream(list) << second << "\n";
    CHECK(named.ask(second).program == second);
    lead(second, other);
    CHECK(named.ask(second).program == second);
    CHECK(named.ask(other).program == second);
  }
  SECTION("a link that others could change") {
    ::chmod(bin.c_str(), 0777);
    CHECK_THAT(named.ask(link).refusal, Contains("chmod o-w " + bin));
    ::chmod(bin.c_str(), 01777);
    CHECK(named.ask(link).program == link);
    if (::geteuid() == 0) {  // only root can give a link away
      REQUIRE(::lchown(link.c_str(), 4711, 4711) == 0);
      CHECK_THAT(named.ask(link).refusal, Contains("the link " + link + " belongs to user 4711, who could let it lead elsewhere"));
    }
  }
  SECTION("links that lead round in a circle") {
    std::filesystem::create_symlink(root + "/b", root + "/a");
    std::filesystem::create_symlink(root + "/a", root + "/b");
    CHECK_THAT(named.ask(root + "/a").refusal, Contains("there is no program"));
  }
}

TEST_CASE("arguments are allowed one by one where the owner says so") {
  TemporaryDirectory directory;
  const std::string root = std::filesystem::canonical(directory.path()).string();
  const std::string train = root + "/train", spaced = root + "/my train";
  make_program(train);
  make_program(spaced);
  using Words = std::vector<std::string>;
  const auto allows = [&](const std::string& entry, const Words& arguments) {
    return AllowList({entry}, "").ask(train, &arguments).refusal.empty();
  };
  CHECK(allows(train, {"--anything", "/etc/passwd"}));
  CHECK(allows(train + " --epochs ?", {"--epochs", "3"}));
  CHECK_FALSE(allows(train + " --epochs ?", {"--epochs", "33"}));
  CHECK_FALSE(allows(train + " --epochs ?", {"--epochs"}));
  CHECK_FALSE(allows(train + " --epochs ?", {"--epochs", "3", "--more"}));
  CHECK(allows(train + "  --epochs ?\t...", {"--epochs", "3", "--more", "/etc/passwd"}));
  CHECK(allows(train + " ...", {}));
  CHECK(allows(root + " --seed [0-9]", {"--seed", "7"}));
  CHECK_FALSE(allows(root + " --seed [0-9]", {"--seed", "x"}));
  CHECK(allows(train + " --data=/srv/*", {"--data=/srv/photos"}));
  for (const char* data : {"--data=/srv/..", "--data=/srv/../etc", "--data=/srv/a/../../etc", "--data=/srv/a/b", "--data=/etc", "x"})
    CHECK_FALSE(allows(train + " --data=/srv/*", {data}));

  const AllowList two({train + " --fast", train + " --slow *"}, "");
  CHECK(two.ask(train).program == train);
  const Words slow{"--slow", "9"}, fast{"--fast"}, other{"--other"};
  CHECK(two.ask(train, &slow).program == train);
  CHECK(two.ask(train, &fast).program == train);
  CHECK(two.ask(train, &other).refusal == train + " is allowed there with other arguments only: --fast; or --slow *");

  const AllowList with_space({spaced}, "");
  CHECK(with_space.ask(spaced, &other).program == spaced);
  CHECK_FALSE(with_space.find_mistake());
  CHECK_THAT(AllowList({train + "x --fast"}, "").find_mistake().value_or(""), Contains("there is no such program"));
}

TEST_CASE("another user's program is not started") {
  if (::geteuid() != 0) return;  // only root can give a file away
  TemporaryDirectory directory;
  const std::string train = std::filesystem::canonical(directory.path()).string() + "/train";
  make_program(train);
  REQUIRE(::chown(train.c_str(), 4711, 4711) == 0);
  CHECK_THAT(AllowList({train}, "").ask(train).refusal, Contains(train + " belongs to user 4711, who could replace it"));
}

TEST_CASE("only variables that can do no harm, or that the owner names, are set from elsewhere") {
  const auto refused = [](const std::vector<std::string>& named, const std::string& name) {
    return AllowedVariables(named).find_refused({{"OMP_NUM_THREADS", "2"}, {name, "x"}});
  };
  for (const char* name : {"LD_PRELOAD", "PATH", "PYTHONPATH", "GIT_CONFIG_GLOBAL", "_JAVA_OPTIONS", "LUA_INIT", "EDITOR", "OMPI_MCA_btl",
                           "RINGLET_ORIGINS", "RINGLET_INSECURE", "RINGLET_TOKEN", "COLOUR", ""}) {
    CAPTURE(name);
    CHECK_THAT(refused({}, name).value_or(""), Contains(std::string("--allow-env ") + name));
  }
  for (const char* name : {"RINGLET_TIMEOUT_MS", "MKL_NUM_THREADS", "NO_COLOR"}) CHECK_FALSE(refused({}, name));
  CHECK_FALSE(refused({"COLOUR"}, "COLOUR"));
  CHECK(refused({"COLOUR"}, "COLOURS"));
  CHECK_FALSE(refused({"WANDB_*"}, "WANDB_MODE"));
  CHECK(refused({"WANDB_*"}, "WAND"));

  StartRanks start;
  for (const char* name : {"RINGLET_TOKEN", "RINGLET_TOKEN_FILE", "RINGLET_RANK", "", "1A", "A B", "A="}) {
    CAPTURE(name);
    start.environment = {{name, "x"}};
    CHECK(agent::find_mistake(start));
  }
  start.environment = {{"LD_PRELOAD", "x"}};
  CHECK_FALSE(agent::find_mistake(start));
  for (const char* name : {"", "*", "A B", "RINGLET_TOKEN", "RINGLET_RANK"}) CHECK(AllowedVariables({name}).find_mistake());
  for (const char* name : {"A", "_x1", "WANDB_*"}) CHECK_FALSE(AllowedVariables({name}).find_mistake());
}
