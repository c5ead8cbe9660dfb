#include "tools/machines/machine_key.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ringlet/error.hpp>
#include <set>
#include <span>

#include "tests/machines/home.hpp"
#include "tools/machines/introduction.hpp"

using namespace ringlet;
using namespace ringlet::machines;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

ConstBytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

LinkBinding binding_of(std::uint8_t number) {
  LinkBinding binding{};
  binding.fill(std::byte{number});
  return binding;
}

}  // namespace

TEST_CASE("signatures and public keys are those of RFC 8032") {
  // The second test vector of section 7.1.
  const auto secret = parse_public_key("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  const MachineKey key(*secret);
  CHECK(to_hex(key.public_key()) == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const Signature signature = key.sign(bytes_of("\x72"));
  CHECK(static_cast<unsigned>(signature[0]) == 0x92);
  CHECK(static_cast<unsigned>(signature[63]) == 0x00);
  CHECK(is_signed(key.public_key(), bytes_of("\x72"), signature));
  CHECK_FALSE(is_signed(key.public_key(), bytes_of("\x73"), signature));
  CHECK_FALSE(is_signed(made_key(1).public_key(), bytes_of("\x72"), signature));
  Signature changed = signature;
  changed[40] ^= std::byte{1};
  CHECK_FALSE(is_signed(key.public_key(), bytes_of("\x72"), changed));
}

TEST_CASE("a fingerprint has 96 bits in groups of four digits, another one for each key") {
  std::set<std::string> all;
  for (std::uint32_t number = 0; number < 50; ++number) {
    const PublicKey key = made_key(number).public_key();
    const std::string shown = fingerprint(key);
    CHECK(shown.size() == 29);
    for (std::size_t i = 0; i < shown.size(); ++i) CHECK((i % 5 == 4 ? shown[i] == '-' : std::isxdigit(shown[i]) != 0));
    CHECK(all.insert(shown).second);
    CHECK(parse_public_key(to_hex(key)) == key);
  }
  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'g')})
    CHECK_FALSE(parse_public_key(text));
}

TEST_CASE("a machine's key is made once, and nobody else can read it") {
  const Home home;
  const mode_t before = ::umask(0);
  const PublicKey key = home.key().public_key();
  ::umask(before);
  CHECK(home.key().public_key() == key);
  CHECK(MachineKey::path(home.variables()) == home.key_file());
  struct stat status{};
  REQUIRE(::stat(home.key_file().c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(std::distance(std::filesystem::directory_iterator(home.folder()), std::filesystem::directory_iterator()) == 1);
  CHECK(Home().key().public_key() != key);
  CHECK_THROWS_WITH(MachineKey::load([](std::string_view) { return std::nullopt; }), Contains("neither XDG_CONFIG_HOME nor HOME"));
}

TEST_CASE("processes that make the key at the same time have the same one") {
  for (int round = 0; round < 10; ++round) {
    const Home home;
    constexpr int kProcesses = 8;
    int gate[2], results[2];
    REQUIRE(::pipe(gate) == 0);
    REQUIRE(::pipe(results) == 0);
    std::array<pid_t, kProcesses> children{};
    for (pid_t& child : children) {
      child = ::fork();
      REQUIRE(child >= 0);
      if (child != 0) continue;
      ::close(gate[1]);
      char nothing = 0;
      (void)!::read(gate[0], &nothing, 1);
      try {
        const PublicKey key = home.key().public_key();
        ::_exit(::write(results[1], key.data(), key.size()) == static_cast<ssize_t>(key.size()) ? 0 : 1);
      } catch (const Error&) {
        ::_exit(2);
      }
    }
    ::close(gate[0]);
    ::close(gate[1]);
    std::set<PublicKey> keys{home.key().public_key()};
    for (const pid_t child : children) {
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(status == 0);
      PublicKey key{};
      REQUIRE(::read(results[0], key.data(), key.size()) == static_cast<ssize_t>(key.size()));
      keys.insert(key);
    }
    CHECK(keys.size() == 1);
    ::close(results[0]);
    ::close(results[1]);
  }
}

TEST_CASE("a key that others may read or replace is refused, and so is what is no key") {
  const Home home;
  const PublicKey key = home.key().public_key();
  const std::string file = home.key_file(), whole = content_of(file);
  for (const mode_t mode : {0640, 0604, 0620}) {
    ::chmod(file.c_str(), mode);
    CHECK_THROWS_WITH(home.key(), Contains("chmod 600") && Contains(file) && !Contains(whole.substr(0, 64)));
  }
  ::chmod(file.c_str(), 0600);
  // Others may list this folder, in which the list of allowed programs is, too, but not change it.
  ::chmod(home.folder().c_str(), 0755);
  CHECK(home.key().public_key() == key);
  ::chmod(home.folder().c_str(), 0775);
  CHECK_THROWS_WITH(home.key(), Contains("chmod go-w"));
  ::chmod(home.folder().c_str(), 0700);

  std::string flipped = whole;
  flipped[3] = flipped[3] == '0' ? '1' : '0';
  for (const std::string& damaged : {std::string(), whole.substr(0, 40), whole.substr(0, whole.size() - 1), flipped, whole + "x"}) {
    CAPTURE(damaged.size());
    std::ofstream(file) << damaged;
    CHECK_THROWS_WITH(home.key(), Contains("is damaged") && Contains("restore it") && Contains(file));
    CHECK(content_of(file) == damaged);
  }
  std::ofstream(file) << std::string(10'000, 'x');
  CHECK_THROWS_WITH(home.key(), Contains("longer than"));
  std::filesystem::remove(file);
  REQUIRE(::symlink("/etc/hostname", file.c_str()) == 0);
  CHECK_THROWS_AS(home.key(), InvalidArgument);
  std::filesystem::remove(file);
  std::ofstream(file) << whole;
  ::chmod(file.c_str(), 0600);
  CHECK(home.key().public_key() == key);
}

TEST_CASE("an introduction is good for one link, part, group and name") {
  const MachineKey key = made_key(7);
  const Introduction given = introduce(key, Part::asks, "home", "attic", binding_of(1));
  CHECK(given.name == "attic");
  CHECK(proved_key(given, Part::asks, "home", binding_of(1)) == key.public_key());
  CHECK_FALSE(proved_key(given, Part::asks, "home", binding_of(2)));
  CHECK_FALSE(proved_key(given, Part::answers, "home", binding_of(1)));
  CHECK_FALSE(proved_key(given, Part::asks, "office", binding_of(1)));
  // The border between group and name cannot be moved.
  CHECK_FALSE(proved_key({"ttic", given.public_key, given.signature}, Part::asks, "homea", binding_of(1)));
  const Introduction other = introduce(made_key(8), Part::asks, "home", "attic", binding_of(1));
  const std::vector<Introduction> wrong{
      {"cellar", given.public_key, given.signature},          {"attic", other.public_key, given.signature},
      {"attic", given.public_key, other.signature},           {"attic", "", ""},
      {"attic", given.public_key.substr(1), given.signature}, {"attic", given.public_key, given.signature + "x"}};
  for (const Introduction& introduction : wrong) CHECK_FALSE(proved_key(introduction, Part::asks, "home", binding_of(1)));
  for (std::size_t at = 0; at < given.signature.size(); ++at) {
    Introduction changed = given;
    changed.signature[at] = static_cast<char>(changed.signature[at] ^ 1);
    CHECK_FALSE(proved_key(changed, Part::asks, "home", binding_of(1)));
  }
}

TEST_CASE("a link that was not authenticated proves nothing") {
  const Introduction given = introduce(made_key(7), Part::asks, "home", "attic", LinkBinding{});
  CHECK_FALSE(proved_key(given, Part::asks, "home", LinkBinding{}));
}
