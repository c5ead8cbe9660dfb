#include "tools/tokens/saved_token.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <ringlet/error.hpp>

#include "tests/temporary_directory.hpp"
#include "tools/tokens/group_token.hpp"

using namespace ringlet;
using namespace ringlet::tokens;
using Catch::Matchers::Contains;

namespace {

const std::string kToken = "4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16", kOther = "4fdp-vcqw-8fhh-yx3p-9fvn-zzkn-051c";

class Home {
 public:
  std::string folder() const { return directory_.path() + "/config/ringlet/tokens"; }
  std::string file(const std::string& group) const { return folder() + "/" + group; }
  void set(const std::string& name, const std::string& value) { values_[name] = value; }
  Variables variables() const {
    return [values = values_](std::string_view name) -> std::optional<std::string> {
      const auto found = values.find(std::string(name));
      return found == values.end() ? std::nullopt : std::optional(found->second);
    };
  }
  bool save(const std::string& group, const std::string& token = kToken, Replace replace = Replace::no) const {
    return save_token(group, token, replace, variables());
  }
  std::optional<std::string> load(const std::string& group) const { return load_token(group, variables()); }

 private:
  test::TemporaryDirectory directory_;
  std::map<std::string, std::string> values_{{"XDG_CONFIG_HOME", directory_.path() + "/config"}, {"HOME", directory_.path()}};
};

mode_t mode_of(const std::string& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

std::ptrdiff_t entries_of(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("a saved token is found again, and nobody else can read it") {
  const Home home;
  CHECK_FALSE(home.load("home"));
  const mode_t before = ::umask(0);
  REQUIRE(home.save("home"));
  ::umask(before);
  CHECK(home.load("home") == kToken);
  CHECK_FALSE(home.load("office"));
  CHECK(mode_of(home.file("home")) == 0600);
  CHECK(mode_of(home.folder()) == 0700);
  CHECK(saved_token_path("home", home.variables()) == home.file("home"));
  CHECK(entries_of(home.folder()) == 1);
}

TEST_CASE("a token is replaced only where that is asked for") {
  const Home home;
  REQUIRE(home.save("home"));
  CHECK_FALSE(home.save("home", kOther));
  CHECK(home.load("home") == kToken);
  CHECK(home.save("home", kOther, Replace::yes));
  CHECK(home.load("home") == kOther);
  CHECK(entries_of(home.folder()) == 1);
}

TEST_CASE("tokens are saved in ~/.config unless XDG_CONFIG_HOME names another place") {
  Home home;
  home.set("XDG_CONFIG_HOME", "relative");
  home.set("HOME", home.folder());
  REQUIRE(home.save("home"));
  CHECK(std::filesystem::exists(home.folder() + "/.config/ringlet/tokens/home"));
  CHECK_THROWS_WITH(load_token("home", [](std::string_view) { return std::nullopt; }), Contains("neither XDG_CONFIG_HOME nor HOME"));
}

TEST_CASE("a group's name cannot lead out of the folder") {
  const Home home;
  for (const std::string name : {"", ".", "..", "../x", "a/b", "/etc/x", ".hidden", "a\nb", "a\x7f", "a\xff"}) {
    CAPTURE(name);
    CHECK(find_group_mistake(name));
    CHECK_THROWS_AS(home.save(name), InvalidArgument);
    CHECK_THROWS_AS(home.load(name), InvalidArgument);
  }
  CHECK(find_group_mistake(std::string(65, 'x')));
  CHECK(find_group_mistake(std::string("a\0b", 3)));
  for (const std::string& name : {std::string(64, 'x'), std::string("b\xc3\xbcro"), std::string("two words")}) {
    CHECK_FALSE(find_group_mistake(name));
    CHECK(home.save(name));
    CHECK(home.load(name) == kToken);
  }
}

TEST_CASE("what others may read or replace is refused, and so is what is no token") {
  const Home home;
  REQUIRE(home.save("home"));
  const std::string file = home.file("home");
  for (const mode_t mode : {0640, 0604, 0620}) {
    ::chmod(file.c_str(), mode);
    CHECK_THROWS_WITH(home.load("home"), Contains("chmod 600") && Contains(file) && !Contains(kToken));
  }
  ::chmod(file.c_str(), 0600);
  ::chmod(home.folder().c_str(), 0770);
  CHECK_THROWS_WITH(home.load("home"), Contains("chmod 700"));
  CHECK_THROWS_WITH(home.save("office"), Contains("chmod 700"));
  ::chmod(home.folder().c_str(), 0700);
  CHECK(home.load("home") == kToken);

  std::ofstream(file) << "too short\n";
  CHECK_THROWS_WITH(home.load("home"), Contains("9 characters"));
  std::ofstream(file) << std::string(10'000, 'x');
  CHECK_THROWS_WITH(home.load("home"), Contains("longer than"));
  std::filesystem::remove(file);
  REQUIRE(::symlink("/etc/hostname", file.c_str()) == 0);
  CHECK_THROWS_AS(home.load("home"), InvalidArgument);
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(home.load("home"), Contains("is no file"));
  CHECK_THROWS_AS(home.save("other", "short"), InvalidArgument);
  CHECK(entries_of(home.folder()) == 1);
}

TEST_CASE("find_token takes the environment's token first") {
  Home home;
  CHECK(find_token("home", home.variables()).empty());
  REQUIRE(home.save("home"));
  CHECK(find_token("home", home.variables()) == kToken);
  const std::string file = home.folder() + "/../named";
  std::ofstream(file) << kOther;
  home.set("RINGLET_TOKEN_FILE", file);
  CHECK(find_token("home", home.variables()) == kOther);
  home.set("RINGLET_TOKEN", "the variable's own token");
  CHECK(find_token("home", home.variables()) == "r92w-21n3-ksk6-jncp-raf2-nwhk-rnsh");
  home.set("RINGLET_TOKEN", "short");
  CHECK_THROWS_WITH(find_token("home", home.variables()), Contains("RINGLET_TOKEN"));
}
