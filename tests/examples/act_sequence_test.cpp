#include <act_sequence.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random.hpp>
#include <settings.hpp>
#include <string>

using namespace train_text;
using Catch::Matchers::Contains;

namespace {

std::string acts_of(const Settings& settings, int first_step) {
  ActSequence acts(settings);
  std::string text;
  for (; acts.act() != Act::end; acts.go_on()) {
    if (acts.act() == Act::beginning) acts.begin_at(first_step);
    text += std::string(text.empty() ? "" : " ") + std::string(name_of(acts.act()));
  }
  CHECK(acts.step() == settings.steps);
  return text;
}

Settings unusual_settings() {
  return {.shape = {.layers = 3, .width = 40, .heads = 5, .context = 17},
          .mode = Mode::fsdp,
          .steps = 123,
          .batch = 45,
          .seed = 0x123456789abcdef0,
          .learning_rate = 1.5e-7,
          .clip_norm = 0,
          .all_reduce_size = (std::int64_t{1} << 40) + 7,
          .communication_type = ringlet::DType::bf16,
          .shares = Shares::measured,
          .measure_every = 6,
          .check_every = 0,
          .validation_windows = 7,
          .sample_bytes = 0,
          .saves = true,
          .checkpoint_every = 8,
          .resume = true,
          .guests = 0};
}

}  // namespace

TEST_CASE("the acts of a run") {
  const std::string ends = " validation validation_sum hashes waiting sample";
  const std::string step = " gradients average loss_sum apply";
  Settings settings;
  settings.steps = 2;
  CHECK(acts_of(settings, 0) == "beginning parameters validation validation_sum" + step + step + ends);
  CHECK(acts_of(settings, 2) == "beginning parameters validation validation_sum" + ends);

  settings.guests = 1;
  settings.steps = 5;
  settings.shares = Shares::measured;
  settings.measure_every = 3;
  settings.check_every = 2;
  settings.saves = true;
  settings.checkpoint_every = 4;
  CHECK(acts_of(settings, 1) == "beginning parameters state validation validation_sum" + step + " speeds hashes" + step + " speeds" + step +
                                    " hashes checkpoint" + step + " checkpoint" + ends);
}

TEST_CASE("a sequence of acts goes back to what follows the last committed step, from wherever it is") {
  Settings settings;
  settings.steps = 4;
  settings.check_every = 2;
  settings.saves = true;
  settings.checkpoint_every = 2;
  const auto acts_from = [](ActSequence acts) {
    std::string text;
    for (; acts.act() != Act::end; acts.go_on()) text += std::string(text.empty() ? "" : " ") + std::string(name_of(acts.act()));
    return text;
  };
  ActSequence acts(settings);
  int committed = 0;
  std::vector<std::string> rests(5);
  for (; acts.act() != Act::end; acts.go_on()) {
    if (acts.act() == Act::beginning) acts.begin_at(0);
    CAPTURE(name_of(acts.act()), acts.step(), committed);
    ActSequence other = acts;
    other.go_back();
    if (committed == 0) {
      CHECK(other.act() == Act::beginning);
      other.begin_at(0);
    }
    // All ranks that have committed the same steps go on alike.
    std::string& rest = rests[static_cast<std::size_t>(committed)];
    if (rest.empty()) rest = acts_from(other);
    CHECK(acts_from(other) == rest);
    if (acts.act() == Act::apply) ++committed;
  }
  const std::string step = "gradients average loss_sum apply", ends = "validation validation_sum hashes waiting sample";
  CHECK(rests[1] == step + " hashes checkpoint " + step + " " + step + " checkpoint " + ends);
  CHECK(rests[2] == "hashes checkpoint " + step + " " + step + " checkpoint " + ends);
  CHECK(rests[4] == "checkpoint " + ends);
}

TEST_CASE("settings arrive as they were sent") {
  const Announcement sent{.settings = unusual_settings(), .refused = false, .folder_bytes = 21, .text_bytes = 1U << 29};
  const Decoded decoded = decode(encode(sent));
  REQUIRE(decoded.problem.empty());
  CHECK(encode(decoded.announcement) == encode(sent));
  CHECK(decoded.announcement.settings.communication_type == ringlet::Wire(ringlet::DType::bf16));
  CHECK(decoded.announcement.settings.learning_rate == 1.5e-7);
  CHECK(decoded.announcement.settings.shape.context == 17);
  CHECK(decoded.announcement.text_bytes == 1U << 29);
}

TEST_CASE("every wire arrives as it was sent, in every mode") {
  for (const auto& wire :
       {std::optional<ringlet::Wire>(), std::optional<ringlet::Wire>(ringlet::DType::f16),
        std::optional(wire_in_blocks(ringlet::BlockFormat::int8)), std::optional(wire_in_blocks(ringlet::BlockFormat::int4))}) {
    Announcement sent;
    sent.settings.communication_type = wire;
    CHECK(decode(encode(sent)).announcement.settings.communication_type == wire);
    for (const Mode mode : {Mode::fsdp, Mode::fully_shard}) {
      sent.settings.mode = mode;
      const Decoded decoded = decode(encode(sent));
      CHECK(decoded.problem.empty());
      CHECK(decoded.announcement.settings.communication_type == wire);
    }
  }
}

TEST_CASE("a record that cannot be used is a sentence that says why") {
  const auto problem_with = [](auto change) {
    Announcement announcement;
    change(announcement);
    return decode(encode(announcement)).problem;
  };
  CHECK(problem_with([](Announcement&) {}).empty());
  CHECK_THAT(problem_with([](Announcement& a) { a.settings.steps = 0; }), Contains("--steps must be at least 1, not 0"));
  CHECK_THAT(problem_with([](Announcement& a) { a.settings.shape.width = 1 << 30; }), Contains("--width"));
  CHECK_THAT(problem_with([](Announcement& a) { a.settings.learning_rate = std::nan(""); }), Contains("--learning-rate"));
  CHECK_THAT(problem_with([](Announcement& a) { a.text_bytes = ~std::uint64_t{0}; }), Contains("text"));
  CHECK_THAT(problem_with([](Announcement& a) { a.folder_bytes = 1U << 31; }), Contains("folder"));
  CHECK_THAT(problem_with([](Announcement& a) { a.settings.communication_type = static_cast<ringlet::DType>(77); }), Contains("type"));
  CHECK_THAT(problem_with([](Announcement& a) {
               a.settings.guests = 1;
               a.settings.mode = Mode::fully_shard;
             }),
             Contains("--fully-shard needs native ranks only"));
  Record record = encode({});
  record[4] = std::byte{9};
  CHECK_THAT(decode(record).problem, Contains("version 9") && Contains("version 4"));
  record[0] = std::byte{0};
  CHECK_THAT(decode(record).problem, Contains("another program"));
  CHECK_THAT(decode(std::span(record).first(10)).problem, Contains("10 bytes"));
}

TEST_CASE("any bytes are settings that can be used, or a sentence") {
  const std::uint64_t seed = GENERATE(range(0, 300));
  CAPTURE(seed);
  Record record = encode({.settings = unusual_settings()});
  for (std::uint64_t i = 0; i <= random_at(seed, 0, 0) % 4; ++i)
    record[random_at(seed, 1, i) % 120] = static_cast<std::byte>(random_at(seed, 2, i));
  const Decoded decoded = decode(record);
  if (decoded.problem.empty() && !decoded.announcement.refused) {
    CHECK(problem_of(decoded.announcement.settings).empty());
    CHECK(decoded.announcement.text_bytes <= kMaxTextBytes);
  }
}
