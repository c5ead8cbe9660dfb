#include <botan/dl_group.h>
#include <openssl/evp.h>

#include <catch2/catch.hpp>

#include "tests/pairing/talk.hpp"
#include "tools/pairing/srp_parameters.hpp"

using namespace ringlet;
using namespace ringlet::pairing;
using namespace ringlet::test;

namespace {

using HostStage = Talk::HostStage;
using NewcomerStage = Talk::NewcomerStage;

/// Returns the bytes of SRP's prime, the group's N.
std::string prime() {
  const Botan::BigInt number = Botan::DL_Group("modp/srp/3072").get_p();
  std::string bytes(kNumberBytes, '\0');
  for (std::size_t place = 0; place < kNumberBytes; ++place) bytes[kNumberBytes - 1 - place] = static_cast<char>(number.byte_at(place));
  return bytes;
}

std::string bytes_of_number(const Botan::BigInt& number) {
  std::string bytes(number.bytes(), '\0');
  for (std::size_t place = 0; place < bytes.size(); ++place) bytes[bytes.size() - 1 - place] = static_cast<char>(number.byte_at(place));
  return bytes;
}

std::string sha256(const std::string& text) {
  std::string digest(32, '\0');
  REQUIRE(EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(), nullptr) == 1);
  return digest;
}

std::string framed(const Message& message) {
  const std::string bytes = encode(message);
  return std::string{static_cast<char>(bytes.size() & 0xff), static_cast<char>(bytes.size() >> 8)} + bytes;
}

/// Runs a pairing and changes one of its messages. Whatever is changed, the newcomer must get the right token or none.
template <class Change>
void run_changed(Talk& talk, std::size_t place, Change change) {
  for (std::size_t word = 0; word < 6; ++word) {
    std::string said = word % 2 == 0 ? talk.newcomer_says() : talk.host_says();
    if (word == place) change(said);
    if (word % 2 == 0)
      talk.host.receive(bytes_of(said));
    else
      talk.newcomer.receive(bytes_of(said));
  }
  CHECK((talk.newcomer.token().empty() || talk.newcomer_has_token()));
  // The same holds for the keys.
  CHECK((talk.newcomer.host().key.empty() || talk.newcomer.host() == talk.attic));
  CHECK((talk.host.newcomer().key.empty() || talk.host.newcomer() == talk.cellar));
}

std::vector<std::size_t> lengths_of_words() {
  Talk talk;
  std::vector<std::size_t> lengths(6);
  for (std::size_t place = 0; place < 6; ++place) {
    Talk one;
    run_changed(one, place, [&](std::string& said) { lengths[place] = said.size(); });
  }
  return lengths;
}

}  // namespace

TEST_CASE("who knows the code gets the token, and both know it of each other") {
  Talk talk;
  talk.run();
  CHECK(talk.host.stage() == HostStage::confirmed);
  CHECK(talk.newcomer.stage() == NewcomerStage::confirmed);
  CHECK(talk.newcomer_has_token());
  CHECK(talk.host.newcomer() == talk.cellar);
  CHECK(talk.newcomer.host() == talk.attic);
}

TEST_CASE("the same in single bytes, and neither code nor token crosses the wire") {
  Talk talk;
  std::string wire;
  for (int round = 0; round < 3; ++round) {
    for (const char byte : talk.newcomer_says()) {
      wire += byte;
      talk.host.receive(bytes_of(std::string(1, byte)));
    }
    for (const char byte : talk.host_says()) {
      wire += byte;
      talk.newcomer.receive(bytes_of(std::string(1, byte)));
    }
  }
  CHECK(talk.host.stage() == HostStage::confirmed);
  CHECK(wire.find("48217305") == std::string::npos);
  CHECK(wire.find("the-token") == std::string::npos);
  for (const std::string& key : {talk.attic.key, talk.cellar.key}) CHECK(wire.find(key) == std::string::npos);
}

TEST_CASE("nothing that a listener can compute from a guess stands on the wire") {
  Talk talk;
  std::string wire, salt;
  for (int round = 0; round < 3; ++round) {
    const std::string up = talk.newcomer_says();
    talk.host.receive(bytes_of(up));
    const std::string down = talk.host_says();
    talk.newcomer.receive(bytes_of(down));
    if (round == 0) salt = decode(down.substr(7))->salt;
    wire += up + down;
  }
  CHECK(talk.host.stage() == HostStage::confirmed);
  REQUIRE(salt.size() == kSaltBytes);
  CHECK(wire.find(salt) != std::string::npos);
  const std::string code = "48217305";
  const std::string within = sha256(kSrpName + ":" + code), exponent = sha256(salt + within);
  const std::string verifier = bytes_of_number(make_srp_verifier(code, {salt.begin(), salt.end()}));
  CHECK(verifier.size() > kNumberBytes - 4);
  // A value made of the public numbers and a guess, but not of the agreed number, would let a listener try every code.
  for (const std::string& form :
       {code, sha256(code), sha256(salt + code), sha256(code + salt), within, exponent, verifier, sha256(verifier),
        SessionKeys(Secret(code), wire).newcomer_proof(), SessionKeys(Secret(verifier), wire).newcomer_proof()})
    for (std::size_t at = 0; at + 8 <= form.size(); at += 8) CHECK(wire.find(form.substr(at, 8)) == std::string::npos);
  // The same code gives other numbers each time.
  Talk again;
  again.host.receive(bytes_of(again.newcomer_says()));
  const auto challenge = decode(again.host_says().substr(7));
  REQUIRE(challenge);
  CHECK(challenge->salt != salt);
  CHECK(wire.find(challenge->number.substr(0, 16)) == std::string::npos);
}

TEST_CASE("a wrong code is refused, and its newcomer learns nothing but that") {
  Talk talk("48217306");
  talk.run();
  CHECK(talk.host.stage() == HostStage::refused);
  CHECK(talk.newcomer.stage() == NewcomerStage::wrong_code);
  CHECK(talk.newcomer.token().empty());
  // The host's answer has the same bytes, whatever the guess was.
  Talk other("00000000"), third("48217304");
  for (Talk* one : {&other, &third}) {
    one->host.receive(bytes_of(one->newcomer_says()));
    one->newcomer.receive(bytes_of(one->host_says()));
    one->host.receive(bytes_of(one->newcomer_says()));
  }
  CHECK(other.host_says() == third.host_says());
}

TEST_CASE("nothing that is changed on the way gives a token away or passes for one") {
  const std::vector<std::size_t> lengths = lengths_of_words();
  for (std::size_t place = 0; place < 5; ++place) {
    const std::size_t stride = stride_of(lengths[place] < 120 ? 3 : 11);
    for (std::size_t at = 0; at < lengths[place]; at += stride) {
      Talk talk;
      CAPTURE(place, at);
      run_changed(talk, place, [&](std::string& said) { said[at] = static_cast<char>(said[at] ^ (1 << (at % 8))); });
      // A change before the proof makes the proof wrong; a change after the token cannot take the token back.
      if (place < 3)
        CHECK((talk.host.stage() == HostStage::refused || talk.host.stage() == HostStage::broken || talk.host.stage() == HostStage::waits));
      if (place == 3) CHECK(talk.host.stage() == HostStage::handed_out);
      if (place == 4) CHECK((talk.host.stage() == HostStage::unconfirmed || talk.host.stage() == HostStage::handed_out));
      CHECK(talk.newcomer.token().empty() == (place < 4));
    }
  }
}

TEST_CASE("a conversation that is cut anywhere gives nothing to either side") {
  const std::vector<std::size_t> lengths = lengths_of_words();
  for (std::size_t place = 0; place < 4; ++place) {
    for (std::size_t kept = 0; kept < lengths[place]; kept += stride_of(lengths[place] < 120 ? 9 : 61)) {
      Talk talk;
      CAPTURE(place, kept);
      run_changed(talk, place, [&](std::string& said) { said.resize(kept); });
      CHECK(talk.newcomer.token().empty());
      CHECK(talk.host.stage() == (place < 3 ? HostStage::waits : HostStage::handed_out));
    }
  }
}

TEST_CASE("words that are reflected, doubled or out of order are refused") {
  std::vector<std::string> words;
  {
    Talk talk;
    for (std::size_t word = 0; word < 6; ++word) {
      words.push_back(word % 2 == 0 ? talk.newcomer_says() : talk.host_says());
      if (word % 2 == 0)
        talk.host.receive(bytes_of(words.back()));
      else
        talk.newcomer.receive(bytes_of(words.back()));
    }
  }
  const std::string greeting = words[0].substr(0, 5), answer = words[2], delivery = words[3];
  SECTION("recorded words mean nothing in another conversation") {
    Talk talk;
    talk.host.receive(bytes_of(words[0]));
    talk.host.receive(bytes_of(answer));
    CHECK(talk.host.stage() == HostStage::refused);
    Talk other;
    (void)other.newcomer_says();
    other.newcomer.receive(bytes_of(words[1]));
    other.newcomer.receive(bytes_of(delivery));
    CHECK(other.newcomer.stage() == NewcomerStage::unproved);
  }
  SECTION("a newcomer does not talk to itself, nor a host") {
    Talk talk;
    talk.newcomer.receive(bytes_of(talk.newcomer_says()));
    CHECK(talk.newcomer.stage() == NewcomerStage::broken);
    Talk other;
    other.host.receive(bytes_of(other.newcomer_says()));
    other.host.receive(bytes_of(other.host_says().substr(5)));
    CHECK(other.host.stage() == HostStage::broken);
  }
  SECTION("an answer that comes back as a delivery proves nothing") {
    Talk talk;
    talk.host.receive(bytes_of(talk.newcomer_says()));
    talk.newcomer.receive(bytes_of(talk.host_says()));
    const auto own = decode(talk.newcomer_says().substr(2));
    REQUIRE(own);
    Message reflected{Message::Kind::delivery};
    reflected.proof = own->proof;
    reflected.sealed_token = std::string(40, 'x');
    talk.newcomer.receive(bytes_of(framed(reflected)));
    CHECK(talk.newcomer.stage() == NewcomerStage::unproved);
  }
  SECTION("no word may come twice or too early") {
    for (const std::string& early : {greeting + answer, greeting + words[4]}) {
      Talk talk;
      talk.host.receive(bytes_of(early));
      CHECK(talk.host.stage() == HostStage::broken);
      CHECK(talk.host_says().empty());
    }
    Talk twice;
    const std::string hello = twice.newcomer_says();
    twice.host.receive(bytes_of(hello + hello.substr(5)));
    CHECK(twice.host.stage() == HostStage::broken);
    Talk early;
    early.newcomer.receive(bytes_of(greeting + delivery));
    CHECK(early.newcomer.stage() == NewcomerStage::broken);
  }
}

TEST_CASE("numbers that would do without the code count as wrong guesses") {
  for (const std::string& number : {std::string(kNumberBytes, '\0'), prime(), std::string(kNumberBytes, '\xff')}) {
    Talk talk;
    talk.host.receive(bytes_of(talk.newcomer_says()));
    (void)talk.host_says();
    Message answer{Message::Kind::answer};
    answer.number = number;
    // This proof would be right if the secret were 0.
    answer.proof = SessionKeys(Secret(std::string(kNumberBytes, '\0')), "").newcomer_proof();
    talk.host.receive(bytes_of(framed(answer)));
    CHECK(talk.host.stage() == HostStage::refused);

    Talk fake;
    const std::string hello = fake.newcomer_says();
    Message challenge{Message::Kind::challenge};
    challenge.name = "attic";
    challenge.salt = std::string(kSaltBytes, 's');
    challenge.number = number;
    fake.newcomer.receive(bytes_of(hello.substr(0, 5) + framed(challenge)));
    CHECK(fake.newcomer.stage() == NewcomerStage::unproved);
    CHECK(fake.newcomer_says().empty());
  }
}

TEST_CASE("who answers without the code cannot pass for the host") {
  Talk talk("11111111");  // the host has another code than the newcomer was told
  talk.host.receive(bytes_of(talk.newcomer_says()));
  talk.newcomer.receive(bytes_of(talk.host_says()));
  (void)talk.newcomer_says();
  Message delivery{Message::Kind::delivery};
  delivery.proof = std::string(kProofBytes, 'p');
  delivery.sealed_token = std::string(40, 'x');
  talk.newcomer.receive(bytes_of(framed(delivery)));
  CHECK(talk.newcomer.stage() == NewcomerStage::unproved);
  CHECK(talk.newcomer.token().empty());
}

TEST_CASE("who is between and knows no code can neither put its own key in nor leave the right one out") {
  const auto changed_message = [](const std::string& said, const auto& change) {
    auto message = decode(said.substr(2));
    REQUIRE(message);
    change(*message);
    return framed(*message);
  };
  // An attacker can take the sealed key of another conversation, mix up the two, or leave it out.
  Talk other;
  other.host.receive(bytes_of(other.newcomer_says()));
  other.newcomer.receive(bytes_of(other.host_says()));
  other.host.receive(bytes_of(other.newcomer_says()));
  const auto other_delivery = decode(other.host_says().substr(2));
  REQUIRE(other_delivery);
  for (const std::string& sealed : {std::string(), other_delivery->sealed_machine, std::string(60, 'x')}) {
    CAPTURE(sealed.size());
    Talk talk;
    talk.host.receive(bytes_of(talk.newcomer_says()));
    talk.newcomer.receive(bytes_of(talk.host_says()));
    talk.host.receive(bytes_of(talk.newcomer_says()));
    const std::string delivery = talk.host_says();
    talk.newcomer.receive(bytes_of(changed_message(delivery, [&](Message& message) { message.sealed_machine = sealed; })));
    CHECK(talk.newcomer.stage() == NewcomerStage::unproved);
    CHECK(talk.newcomer.token().empty());
    CHECK(talk.newcomer.host().key.empty());

    Talk later;
    later.host.receive(bytes_of(later.newcomer_says()));
    later.newcomer.receive(bytes_of(later.host_says()));
    later.host.receive(bytes_of(later.newcomer_says()));
    const std::string right = later.host_says();
    later.newcomer.receive(bytes_of(right));
    const std::string host_machine = decode(right.substr(2))->sealed_machine, receipt = later.newcomer_says();
    const std::string put = sealed.size() == 60 ? host_machine : sealed;
    later.host.receive(bytes_of(changed_message(receipt, [&](Message& message) { message.sealed_machine = put; })));
    CHECK(later.host.stage() == HostStage::unconfirmed);
    CHECK(later.host.newcomer().key.empty());
  }
}

TEST_CASE("another group is refused before anything is guessed, and garbage ends the conversation") {
  const Secret code("48217305"), token("the token of the group");
  HostSession host("office", {"attic", std::string(kMachineKeyBytes, 'h')}, code, token, fill_random);
  Talk talk;
  host.receive(bytes_of(talk.newcomer_says()));
  CHECK(host.stage() == HostStage::broken);
  talk.newcomer.receive(bytes_of(host.take_outgoing()));
  CHECK(talk.newcomer.stage() == NewcomerStage::other_group);
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n"), std::string("RNGP\x01"), std::string("RNGP\x02\xff\xff", 7),
                                     std::string("RNGP\x02\x00\x00", 7), std::string("RNGP\x02\x01\x00\xff", 8)}) {
    Talk one;
    one.host.receive(bytes_of(garbage));
    CHECK(one.host.stage() == HostStage::broken);
    CHECK(one.host_says().empty());
    one.newcomer.receive(bytes_of(garbage));
    CHECK(one.newcomer.stage() == NewcomerStage::broken);
  }
}
