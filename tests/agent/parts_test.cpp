#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "job.pb.h"
#include "tests/temporary_directory.hpp"
#include "tools/agent/allow_list.hpp"
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
  return {Hail{1, "0.1.0", "home", "desk", "/opt/train", "/data"},
          Offer{1, "0.1.0", "attic", 4, "no", 2, "10.0.0.1", "10.0.0.2"},
          BindPort{"0.0.0.0", 5000},
          PortBound{40123},
          start,
          RanksStarted{{7, 8, 0xffffffffu}},
          Failed{127, "cannot"},
          Output{3, true, std::string("a\0b", 3)},
          Credit{65536, true},
          Exit{3, 1, 9, true, 2},
          Order{15, true, 5000},
          Over{},
          Beat{},
          EchoRequest{3, std::string("a\0b", 3), 65536},
          Echo{3, 1'700'000'000'000, "x"},
          PathSurvey{{7, 0xffffffffffffffffu}},
          SurveyedPaths{{SurveyedPath{7, 300'000, 100'000'000, ""}, SurveyedPath{8, 0, 0, "no answer"}}},
          Notice{"a sentence"},
          Input{std::string("a\0\xff", 3)},
          InputTaken{}};
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
  RanksStarted started{std::vector<std::uint32_t>(kMaxRanksPerMachine + 1, 1)};
  CHECK_FALSE(decode(bytes_of(encode(started))));
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

TEST_CASE("variables that bring code are not set from elsewhere") {
  for (const char* name : {"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PATH", "PYTHONPATH", "BASH_ENV", "IFS", "RINGLET_TOKEN",
                           "RINGLET_TOKEN_FILE", "", "1A", "A B", "A="}) {
    CAPTURE(name);
    CHECK(find_forbidden(name));
  }
  for (const char* name : {"COLOUR", "RINGLET_TIMEOUT_MS", "OMP_NUM_THREADS", "_x1"}) {
    CAPTURE(name);
    CHECK_FALSE(find_forbidden(name));
  }
}
