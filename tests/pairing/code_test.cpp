#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/pairing/talk.hpp"
#include "tools/pairing/message.hpp"
#include "tools/pairing/pairing_code.hpp"
#include "tools/pairing/srp.hpp"

using namespace ringlet;
using namespace ringlet::pairing;
using namespace ringlet::test;

namespace {

/// Returns a source that gives the bytes 0, 1, ..., 255, 0, ...
FillRandom counting(unsigned& next) {
  return [&next](Bytes out) {
    for (std::byte& byte : out) byte = static_cast<std::byte>(next++);
  };
}

}  // namespace

TEST_CASE("codes are digits, each as likely as any other") {
  std::set<std::string> codes;
  for (int i = 0; i < 200; ++i) {
    const Secret code = make_code(8, fill_random);
    REQUIRE(code.view().size() == 8);
    REQUIRE(code.view().find_first_not_of("0123456789") == std::string_view::npos);
    codes.insert(std::string(code.view()));
  }
  CHECK(codes.size() > 195);
  // When every byte comes once, each digit comes 25 times, and the last six bytes are passed over.
  std::map<char, int> count;
  unsigned next = 0;
  for (int i = 0; i < 25; ++i) {
    const Secret code = make_code(6, counting(next));
    for (const char digit : code.view()) ++count[digit];
  }
  for (int i = 0; i < 100; ++i) ++count[make_code(1, counting(next)).view()[0]];
  CHECK(next == 250);
  for (const auto& [digit, times] : count) CHECK(times == 25);
  CHECK(make_code(1, counting(next)).view() == "0");
  CHECK(next == 257);
}

TEST_CASE("a code is shown in two halves, and read with anything between digits that people put there") {
  CHECK(spaced_code(Secret("48217305")) == "4821 7305");
  CHECK(spaced_code(Secret("482173")) == "482 173");
  CHECK(spaced_code(Secret("4821730")) == "4821 730");
  for (const char* typed : {"48217305", "4821 7305", " 4821-7305\r\n", "4 8 2 1 7 3 0 5"}) {
    const auto code = read_code(typed);
    REQUIRE(code);
    CHECK(code->view() == "48217305");
  }
  for (const char* typed : {"", "12345", "123456789", "1234a678", "+12345678", "１２３４５６"}) CHECK_FALSE(read_code(typed));
}

TEST_CASE("messages come back as they were, and what is out of bounds is refused") {
  Message message{Message::Kind::delivery};
  message.group = "home";
  message.name = "b\xc3\xbcro";
  message.salt = std::string(kSaltBytes, '\xff');
  message.number = std::string(kNumberBytes, '\0');
  message.proof = std::string(kProofBytes, 'p');
  message.sealed_token = std::string(kMaxTokenBytes + kSealBytes, 't');
  message.reason = Message::Reason::other_group;
  message.sealed_machine = std::string(kSealBytes + kMachineKeyBytes + kMaxMachineNameBytes, 'm');
  const std::string bytes = encode(message);
  CHECK(bytes.size() <= kMaxMessageBytes);
  CHECK(decode(bytes) == message);
  for (std::size_t length = 0; length < bytes.size(); ++length) CHECK(decode(bytes.substr(0, length)) != message);
  CHECK_FALSE(decode(""));
  CHECK_FALSE(decode(bytes + std::string(kMaxMessageBytes, 'x')));
  CHECK(decode(bytes + "\x7a\x01x") == message);  // field 15, which is not known
  const auto refused = [&](auto change) {
    Message changed = message;
    change(changed);
    return !decode(encode(changed));
  };
  CHECK(refused([](Message& one) { one.group = std::string(65, 'x'); }));
  CHECK(refused([](Message& one) { one.name = "\x1b[2J"; }));
  CHECK(refused([](Message& one) { one.name = "\xff"; }));
  CHECK(refused([](Message& one) { one.salt += 'x'; }));
  CHECK(refused([](Message& one) { one.number.pop_back(); }));
  CHECK(refused([](Message& one) { one.proof += 'x'; }));
  CHECK(refused([](Message& one) { one.sealed_token += 'x'; }));
  CHECK(refused([](Message& one) { one.sealed_token.resize(kSealBytes); }));
  CHECK(refused([](Message& one) { one.sealed_machine += 'x'; }));
  CHECK(refused([](Message& one) { one.sealed_machine.resize(kSealBytes + kMachineKeyBytes); }));
  CHECK(refused([](Message& one) { one.kind = Message::Kind::none; }));
  CHECK(refused([](Message& one) { one.kind = static_cast<Message::Kind>(7); }));
  CHECK(refused([](Message& one) { one.kind = static_cast<Message::Kind>(-1); }));
  // A reason that is not known yet is still a refusal.
  message.reason = static_cast<Message::Reason>(3);
  REQUIRE(decode(encode(message)));
  CHECK(decode(encode(message))->reason == Message::Reason::unknown);
}

TEST_CASE("only the same code gives the same secret, and numbers that give it away are refused") {
  const std::string salt(kSaltBytes, 's');
  const Secret code("482173"), other("482174");
  SrpHost host(code, salt), again(code, salt), second(code, salt);
  CHECK(host.number() != again.number());
  const auto right = answer_srp(code, salt, host.number());
  const auto wrong = answer_srp(other, salt, again.number());
  REQUIRE((right && wrong));
  CHECK(host.agree(right->number)->view() == right->shared.view());
  CHECK(right->shared.view().size() == kNumberBytes);
  CHECK(again.agree(wrong->number)->view() != wrong->shared.view());
  CHECK_FALSE(host.agree(right->number));  // a host checks one guess only

  // Refused are zero, numbers of another length, and all ones, which is more than the prime: that begins and ends with 64 ones.
  for (const std::string& number :
       {std::string(kNumberBytes, '\0'), std::string(kNumberBytes, '\xff'), std::string(), std::string(10, 'x')}) {
    CHECK_FALSE(SrpHost(code, salt).agree(number));
    CHECK_FALSE(answer_srp(code, salt, number));
  }
}
