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
