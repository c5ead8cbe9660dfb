#include <catch2/catch.hpp>
#include <input_error.hpp>
#include <options.hpp>

using namespace train_text;
using Catch::Matchers::Contains;

namespace {

Options parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "train_text");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  return parse_options(static_cast<int>(pointers.size()), pointers.data()).value();
}

}  // namespace

TEST_CASE("an option that names a file or a folder is not empty") {
  for (const std::string option : {"--data", "--log-losses", "--log-hashes", "--trace", "--checkpoint"}) {
    CAPTURE(option);
    CHECK_THROWS_AS(parse({option, ""}), InputError);
    CHECK_THROWS_WITH(parse({option, ""}), Contains(option) && Contains("empty name"));
    CHECK_THROWS_AS(parse({option + "="}), InputError);
    CHECK_NOTHROW(parse({option, "name"}));
  }
}

TEST_CASE("a number that an option cannot have is refused with what is possible") {
  CHECK_THROWS_WITH(parse({"--seed", "-1"}), Contains("--seed: a whole number from 0 to 18446744073709551615 is possible, not -1"));
  CHECK_THROWS_WITH(parse({"--seed", "99999999999999999999999"}),
                    Contains("18446744073709551615 is possible, not 99999999999999999999999"));
  CHECK(parse({"--seed", "18446744073709551615"}).seed == ~std::uint64_t{0});
  CHECK_THROWS_WITH(parse({"--all-reduce-size", "-1"}), Contains("--all-reduce-size: a whole number from 0 to") && Contains("not -1"));
  CHECK_THROWS_WITH(parse({"--steps", "99999999999"}),
                    Contains("--steps: a whole number from 1 to 1000000000 is possible, not 99999999999"));
  CHECK_THROWS_WITH(parse({"--steps", "7x"}), Contains("not 7x"));
  CHECK_THROWS_WITH(parse({"--width", "0"}), Contains("--width: a whole number from 1 to 65536"));
  CHECK_THROWS_WITH(parse({"--inner-steps", "5", "--outer-momentum", "1.5"}),
                    Contains("--outer-momentum must be at least 0 and below 1, not 1.5"));
  CHECK(parse({"--inner-steps", "5", "--outer-momentum", "0"}).outer_momentum == 0);
}

TEST_CASE("an option of few averages is refused without them") {
  for (const std::string option : {"--fragments", "--overlap", "--outer-lr", "--outer-momentum"}) {
    CAPTURE(option);
    CHECK_THROWS_WITH(parse({option, "1"}), Contains(option));
    CHECK_THROWS_WITH(parse({"--inner-steps", "0", option, "1"}), Contains(option + " goes with --inner-steps of 1 or more"));
  }
}

TEST_CASE("settings that another rank sends have the same limits") {
  Settings settings;
  CHECK(problem_of(settings).empty());
  settings.all_reduce_size = -1;
  CHECK_THAT(problem_of(settings), Contains("--all-reduce-size must be 0 (each part by itself) or more, not -1"));
}
