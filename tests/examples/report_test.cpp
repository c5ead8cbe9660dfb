#include <stdlib.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <counted.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <progress.hpp>
#include <report.hpp>

using namespace train_text;

namespace {

constexpr ProgressState kHalf{
    .step = 50, .steps = 100, .loss = 2.5, .tokens_per_second = 1234, .communication_share = 0.125, .seconds_left = 65};

constexpr Report kReport{.ranks = 4,
                         .steps = 10,
                         .seconds = 2,
                         .tokens_per_second = 500,
                         .communication_share = 0.25,
                         .unigram_entropy = 3.0,
                         .first_validation_loss = 5.5,
                         .last_validation_loss = 1.5,
                         .parameter_hash = 0xabcdef,
                         .mode = "fsdp",
                         .parameter_bytes_per_rank = 2048,
                         .optimizer_bytes_per_rank = 3 << 20};

}  // namespace

TEST_CASE("a progress bar fits its terminal, and drops numbers rather than breaking the line") {
  for (int width = 0; width < 200; ++width) CHECK(progress_bar(kHalf, width).size() <= static_cast<std::size_t>(width));
  CHECK(progress_bar(kHalf, 20) == "50/100  loss 2.500");
  CHECK(progress_bar(kHalf, 200) ==
        "[====================                    ] 50/100  loss 2.500  1:05 left  1234 tokens/s  12.5 % communication");
}

TEST_CASE("the rate is reckoned from when the first of the steps began") {
  std::FILE* out = std::tmpfile();
  REQUIRE(out != nullptr);
  Progress progress(out, 40, 100, 1000, Progress::Clock::now() - std::chrono::hours(1));
  progress.update(41, 2, 0);
  std::array<char, 200> line{};
  std::rewind(out);
  REQUIRE(std::fgets(line.data(), line.size(), out) != nullptr);
  std::fclose(out);
  CHECK(std::string(line.data()).rfind("step 41/100  loss 2.000  3540:", 0) == 0);
}

TEST_CASE("a progress line holds every number") {
  CHECK(progress_line(kHalf) == "step 50/100  loss 2.500  1:05 left  1234 tokens/s  12.5 % communication");
  ProgressState unknown_rate = kHalf;
  unknown_rate.tokens_per_second = 0;
  CHECK(progress_line(unknown_rate) == "step 50/100  loss 2.500  1:05 left  12.5 % communication");
}

TEST_CASE("the report as JSON is one line with every key") {
  const std::string line = json_line(kReport);
  CHECK(line.find('\n') == std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  CHECK(parsed.size() == 12);
  CHECK(parsed.at("ranks") == 4);
  CHECK(parsed.at("steps") == 10);
  CHECK(parsed.at("seconds") == 2.0);
  CHECK(parsed.at("tokens_per_s") == 500.0);
  CHECK(parsed.at("unigram_entropy") == 3.0);
  CHECK(parsed.at("val_loss_first") == 5.5);
  CHECK(parsed.at("val_loss_last") == 1.5);
  CHECK(parsed.at("parameter_hash") == "0000000000abcdef");
  CHECK(parsed.at("communication_share") == 0.25);
  CHECK(parsed.at("mode") == "fsdp");
  CHECK(parsed.at("parameter_bytes_per_rank") == 2048);
  CHECK(parsed.at("optimizer_bytes_per_rank") == 3 << 20);
  Report outer = kReport;
  outer.averages = 7;
  CHECK(nlohmann::json::parse(json_line(outer)).at("averages") == 7);
  CHECK_THAT(summary(outer, ""), Catch::Contains("averages of the parameters       7\n"));
}

TEST_CASE("the summary names the losses and keeps control characters off the terminal") {
  const std::string text = summary(kReport, "int x;\n\x1b[2J");
  CHECK_THAT(text, Catch::Contains("4 ranks, 10 steps") && Catch::Contains("1.500, 50 % of the entropy") &&
                       Catch::Contains("equal on all 4") &&
                       Catch::Contains("fsdp: 2.0 KiB of parameters and 3.0 MiB of optimizer state per rank"));
  CHECK_THAT(text, Catch::Contains("int x;\n    ?[2J"));
}

TEST_CASE("one is no plural") {
  CHECK(counted(0, "step") == "0 steps");
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(2, "step") == "2 steps");
  Report one = kReport;
  one.ranks = one.steps = 1;
  CHECK_THAT(summary(one, ""), Catch::Contains("\n1 rank, 1 step in "));
}

TEST_CASE("how others join says what they need") {
  for (const char* name : {"RINGLET_TOKEN", "RINGLET_TOKEN_FILE", "RINGLET_RANK"}) ::unsetenv(name);
  CHECK(how_to_join("host:7", "") == "other processes join with RINGLET_JOIN=host:7");
  CHECK(how_to_join("host:7", "the same text") == "other processes with the same text join with RINGLET_JOIN=host:7");
  ::setenv("RINGLET_TOKEN_FILE", "group.token", 1);
  CHECK(how_to_join("host:7", "") == "other processes join with RINGLET_JOIN=host:7 and the same token, which is in RINGLET_TOKEN_FILE");
  ::setenv("RINGLET_TOKEN", "a token of this test", 1);
  CHECK(how_to_join("host:7", "") == "other processes join with RINGLET_JOIN=host:7 and the same RINGLET_TOKEN");
  // A launcher makes a token where none is given, and a rank cannot tell.
  ::setenv("RINGLET_RANK", "0", 1);
  CHECK_THAT(how_to_join("host:7", ""), Catch::Contains("and the same RINGLET_TOKEN, if you gave the job one"));
  for (const char* name : {"RINGLET_TOKEN", "RINGLET_TOKEN_FILE", "RINGLET_RANK"}) ::unsetenv(name);
}
