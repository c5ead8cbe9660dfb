#include "core/base/printable.hpp"

#include <catch2/catch.hpp>

#include "core/wire/control.hpp"

using namespace ringlet;

TEST_CASE("what can be seen stays as it is") {
  for (const std::string text : {"", "attic", "Zoë's Mac", "日本語", "🖥 naïve", "a b/c:[d] 100 %", "עברית", "e\u0301"}) {
    CAPTURE(text);
    CHECK(is_printable(text));
    CHECK(printable(text) == text);
  }
}

TEST_CASE("what controls a terminal, turns its direction or cannot be seen is replaced") {
  const std::pair<std::string, std::string> cases[] = {
      {"\x1b[2Jhome", "?[2Jhome"},  // an escape sequence
      {"a\nb\r\tc", "a?b??c"},
      {std::string("a\0b", 3), "a?b"},
      {"\x7f", "?"},
      {"\u009b31m", "?31m"},            // C1's CSI
      {"a\u202egpj.exe", "a?gpj.exe"},  // writes the rest from right to left
      {"\u2066x\u2069", "?x?"},
      {"ad\u200bmin", "ad?min"},
      {"\ufeffx", "?x"},
      {"line\u2028more", "line?more"},
      {"soft\u00adhyphen", "soft?hyphen"},
      {"tag\U000e0041", "tag?"},
      {"\xff", "?"},
      {"a\xc3", "a?"},
      {"\xed\xa0\x80", "???"},  // half of a surrogate pair
      {"\xc0\x9b", "??"},       // an overlong escape
  };
  for (const auto& [text, shown] : cases) {
    CAPTURE(text);
    CHECK_FALSE(is_printable(text));
    CHECK(printable(text) == shown);
    CHECK(is_printable(shown));
  }
}

TEST_CASE("a text is cut between characters") {
  CHECK(cut_text("attic", 5) == "attic");
  CHECK(cut_text("attic", 4) == "atti");
  CHECK(cut_text("a€b", 4) == "a€");
  CHECK(cut_text("a€b", 3) == "a");
  CHECK(cut_text("€", 2).empty());
}

TEST_CASE("texts of other ranks are printable once they are decoded") {
  const std::string bad = "a\x1b[31m\u202e\xff", good = "a?[31m??";
  const auto through_wire = [](const wire::ControlMessage& message) {
    const std::string bytes = wire::encode_control(message);
    return wire::decode_control(std::as_bytes(std::span(bytes))).value();
  };
  wire::Abort abort;
  abort.code = 1;
  abort.text = bad;
  CHECK(wire::to_status(std::get<wire::Abort>(through_wire(abort))).text() == good);
  CHECK(std::get<wire::SeatRequest>(through_wire(wire::SeatRequest{bad})).name == good);
  wire::RankState state;
  state.host = state.program = state.links = state.cipher = state.parts = state.last.call = bad;
  const auto told = std::get<wire::RankState>(through_wire(state));
  for (const std::string& text : {told.host, told.program, told.links, told.cipher, told.parts, told.last.call}) CHECK(text == good);
}
