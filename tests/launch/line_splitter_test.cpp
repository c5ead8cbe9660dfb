#include <catch2/catch.hpp>
#include <string>

#include "tools/launch/line_splitter.hpp"

using ringlet::launch::LineSplitter;

namespace {

// Feeds the input in pieces of this size; the lines must be the same for every size.
std::string split(const std::string& prefix, const std::string& input, std::size_t piece) {
  LineSplitter splitter(prefix);
  std::string out;
  for (std::size_t at = 0; at < input.size(); at += piece) splitter.feed(std::string_view(input).substr(at, piece), out);
  splitter.finish(out);
  return out;
}

}  // namespace

TEST_CASE("lines get their prefix and keep their ends") {
  const auto piece = GENERATE(range(1, 20));
  CAPTURE(piece);
  const auto with_prefix = [&](const std::string& input) { return split("[0] ", input, static_cast<std::size_t>(piece)); };
  CHECK(with_prefix("") == "");
  CHECK(with_prefix("one\ntwo\n") == "[0] one\n[0] two\n");
  CHECK(with_prefix("one\n\ntwo") == "[0] one\n[0] \n[0] two\n");
  CHECK(with_prefix("dos\r\nunix\n") == "[0] dos\r\n[0] unix\n");
  CHECK(with_prefix("\r 10%\r 20%\r 30%\ndone\n") == "[0]  10%\r[0]  20%\r[0]  30%\n[0] done\n");
  CHECK(with_prefix("10%\r") == "[0] 10%\n");
  CHECK(with_prefix("\r\r\n") == "[0] \r\n");
  CHECK(with_prefix("\r") == "");
  CHECK(with_prefix(std::string("a\0b\n", 4)) == std::string("[0] a\0b\n", 8));
}

TEST_CASE("without a prefix the bytes come out as they went in") {
  const auto piece = GENERATE(range(1, 20));
  const std::string input = GENERATE("", "\r", "\r\r\n", "a", "a\n", "a\r", "a\rb\r\n\n\r", "a\r\n");
  CAPTURE(piece, input);
  CHECK(split("", input, static_cast<std::size_t>(piece)) == input);
  const std::string long_input = std::string(3 * LineSplitter::kMaxLineBytes + 5, 'z') + input;
  CHECK(split("", long_input, static_cast<std::size_t>(piece) * 5000) == long_input);
}

TEST_CASE("a line that is too long is cut") {
  const std::string full(LineSplitter::kMaxLineBytes, 'z');
  const auto piece = GENERATE(as<std::size_t>{}, 1000, 65536, 1000000);
  CHECK(split("[0] ", full + "\n", piece) == "[0] " + full + "\n");
  CHECK(split("[0] ", full, piece) == "[0] " + full + "\n");
  CHECK(split("[0] ", full + "y\n", piece) == "[0] " + full + "\n[0] y\n");
  CHECK(split("[0] ", full + full + "y", piece) == "[0] " + full + "\n[0] " + full + "\n[0] y\n");
}
