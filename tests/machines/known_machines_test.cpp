#include "tools/machines/known_machines.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ringlet/error.hpp>

#include "tests/machines/home.hpp"

using namespace ringlet;
using namespace ringlet::machines;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

const PublicKey kAttic = made_key(1).public_key(), kCellar = made_key(2).public_key(), kOther = made_key(3).public_key();
using Known = std::vector<KnownMachine>;

std::string text_of_list(const Home& home) {
  std::ifstream file(home.list_file(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_list(const Home& home, const std::string& text) {
  std::ofstream(home.list_file()) << text;
  ::chmod(home.list_file().c_str(), 0600);
}

}  // namespace

TEST_CASE("a machine is remembered at the first contact, and has to keep its key") {
  const Home home;
  const KnownMachines known = home.known();
  CHECK(known.load().empty());
  CHECK(known.meet_answering("attic", kAttic).first);
  CHECK(known.load() == Known{{"attic", kAttic, Trust::seen}});
  const Acquaintance again = known.meet_answering("attic", kAttic);
  CHECK_FALSE(again.first);
  CHECK(again.refusal.empty());
  const Acquaintance impostor = known.meet_answering("attic", kOther);
  CHECK_THAT(impostor.refusal, Contains(" --group home --replace`"));
  CHECK_FALSE(impostor.first);
  CHECK_THAT(impostor.refusal, Contains(fingerprint(kAttic)) && Contains(fingerprint(kOther)) && Contains("attic") &&
                                   Contains("ringlet pair --group home") && Contains("ringlet machines remove attic --group home"));
  CHECK(known.load() == Known{{"attic", kAttic, Trust::seen}});
  CHECK(known.judge_answering("cellar", kCellar).first);
  CHECK(known.load().size() == 1);
  struct stat status{};
  REQUIRE(::stat(home.list_file().c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
}

TEST_CASE("this machine's own key needs no introduction") {
  const Home home;
  const KnownMachines known = home.known(kAttic);
  CHECK_FALSE(known.meet_answering("attic", kAttic).first);
  CHECK_FALSE(known.meet_asking("desk", kAttic).first);
  CHECK(known.load().empty());
  known.trust_paired("cellar", kCellar);
  CHECK_FALSE(known.meet_answering("cellar", kAttic).refusal.empty());
}

TEST_CASE("a machine that asks is known by its key, whatever it calls itself") {
  const Home home;
  const KnownMachines known = home.known();
  CHECK(known.meet_asking("desk", kAttic).first);
  CHECK_FALSE(known.meet_asking("laptop", kAttic).first);
  CHECK(known.meet_asking("laptop", kAttic).refusal.empty());
  // A name from elsewhere may be anything.
  CHECK(known.meet_asking("", kCellar).first);
  CHECK(known.meet_asking(std::string(500, 'x') + "\n", kOther).first);
  CHECK(known.load() ==
        Known{{"desk", kAttic, Trust::seen}, {"unnamed", kCellar, Trust::seen}, {std::string(64, 'x'), kOther, Trust::seen}});
  CHECK(known.meet_asking(std::string(64, 'x'), made_key(4).public_key()).name == std::string(60, 'x') + " (2)");
}

TEST_CASE("machines that only ask may share a name, but not that of a paired one") {
  const Home home;
  const KnownMachines known = home.known();
  CHECK(known.meet_asking("desk", kAttic).name == "desk");
  CHECK(known.meet_asking("desk", kCellar).name == "desk (2)");
  CHECK(known.meet_asking("desk", kOther).name == "desk (3)");
  CHECK_FALSE(known.meet_asking("desk", kCellar).first);
  // A machine that is to do something is meant by its name, and so has it alone.
  CHECK_THAT(known.meet_answering("desk", kCellar).refusal, Contains(fingerprint(kAttic)) && Contains(fingerprint(kCellar)));
  known.trust_paired("desk", kAttic);
  CHECK_THAT(known.meet_asking("desk", made_key(4).public_key()).refusal, Contains(fingerprint(kAttic)));
  CHECK(known.meet_asking("desk", kCellar).refusal.empty());
  CHECK(known.load().size() == 3);
}

TEST_CASE("a machine may have several names, and is told once of each") {
  const Home home;
  const KnownMachines known = home.known();
  known.trust_paired("desk", kAttic);
  CHECK(known.meet_answering("attic", kAttic).first);
  CHECK_FALSE(known.meet_answering("attic", kAttic).first);
  CHECK(known.remove("desk") == kAttic);
  CHECK_FALSE(known.meet_answering("attic", kAttic).refusal.empty());
  CHECK(known.load() == Known{{"desk", kAttic, Trust::removed}});
}

TEST_CASE("where a machine was removed it is refused, and so are unknown keys") {
  const Home home;
  const KnownMachines known = home.known();
  known.trust_paired("attic", kAttic);
  known.meet_asking("cellar", kCellar);
  CHECK(known.remove("attic") == kAttic);
  CHECK_THROWS_WITH(known.remove("attic"), Contains("no machine 'attic' is known in group home"));
  for (const auto& [name, key] : {std::pair(std::string("attic"), kAttic), std::pair(std::string("new"), kAttic),
                                  std::pair(std::string("attic"), kOther), std::pair(std::string("new"), kOther)}) {
    CAPTURE(name);
    for (const Acquaintance& met : {known.meet_asking(name, key), known.meet_answering(name, key)}) {
      CHECK_FALSE(met.first);
      CHECK_THAT(met.refusal, Contains("ringlet machines add " + name + " " + to_hex(key) + " --group home") && Contains("removed"));
    }
  }
  CHECK(known.meet_asking("cellar", kCellar).refusal.empty());
  known.add("new", kOther, tokens::Replace::no);
  CHECK(known.meet_asking("new", kOther).refusal.empty());
  CHECK(known.meet_answering("new", kOther).refusal.empty());
  SECTION("pairing takes it back") { known.trust_paired("attic", kAttic); }
  SECTION("so does its key") { known.add("attic", kAttic, tokens::Replace::no); }
  CHECK(known.meet_asking("attic", kAttic).refusal.empty());
  CHECK(known.meet_answering("attic", kAttic).refusal.empty());
}

TEST_CASE("another machine of a removed one's name does not open the group") {
  const Home home;
  const KnownMachines known = home.known();
  known.trust_paired("attic", kAttic);
  known.remove("attic");
  known.trust_paired("attic", kOther);
  CHECK(known.meet_answering("attic", kOther).refusal.empty());
  CHECK_FALSE(known.meet_answering("attic", kAttic).refusal.empty());
  CHECK_FALSE(known.meet_asking("cellar", kCellar).refusal.empty());
}

TEST_CASE("machines are paired, added and renamed") {
  const Home home;
  const KnownMachines known = home.known();
  known.meet_answering("attic", kAttic);
  known.add("attic", kAttic, tokens::Replace::no);
  CHECK(known.load() == Known{{"attic", kAttic, Trust::added}});
  known.trust_paired("attic", kAttic);
  CHECK(known.load() == Known{{"attic", kAttic, Trust::paired}});
  CHECK_THROWS_WITH(known.add("attic", kOther, tokens::Replace::no), Contains("--replace") && Contains(fingerprint(kAttic)));
  known.add("cellar", kCellar, tokens::Replace::no);
  CHECK_THROWS_WITH(known.rename("attic", "cellar"), Contains("another machine"));
  CHECK_THROWS_WITH(known.rename("roof", "tower"), Contains("no machine 'roof'"));
  CHECK_THROWS_AS(known.rename("attic", "a\nb"), InvalidArgument);
  known.rename("attic", "the roof");
  CHECK(known.load() == Known{{"the roof", kAttic, Trust::paired}, {"cellar", kCellar, Trust::added}});
  known.add("cellar", kOther, tokens::Replace::yes);
  CHECK(known.load()[1] == KnownMachine{"cellar", kOther, Trust::added});
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string(65, 'x'), std::string("\xff")}) {
    CHECK_THROWS_AS(known.add(name, kCellar, tokens::Replace::no), InvalidArgument);
    CHECK_THROWS_AS(known.trust_paired(name, kCellar), InvalidArgument);
    CHECK_FALSE(known.meet_answering(name, kCellar).refusal.empty());
  }
  CHECK(known.load().size() == 2);
  CHECK_THROWS_AS(KnownMachines("../x", kAttic, home.variables()), InvalidArgument);
  CHECK(KnownMachines("office", kAttic, home.variables()).load().empty());
}

TEST_CASE("a list that is damaged is told with its line, and nothing of it is lost") {
  const Home home;
  const KnownMachines known = home.known();
  known.trust_paired("attic", kAttic);
  const std::string good = text_of_list(home);
  for (const std::string& bad :
       {std::string("nonsense\n"), std::string("paired " + to_hex(kCellar) + "\n"), std::string("\n"), std::string("seen 1234 x\n"),
        "trusted " + to_hex(kCellar) + " cellar\n", "seen " + to_hex(kCellar) + " \n", "seen " + to_hex(kCellar) + " a\x1b[31m\n", good}) {
    CAPTURE(bad);
    write_list(home, good + bad);
    CHECK_THROWS_WITH(known.load(), Contains(home.list_file()) && Contains("line 2"));
    CHECK_THROWS_AS(known.meet_asking("cellar", kCellar), InvalidArgument);
    CHECK_THROWS_AS(known.meet_answering("cellar", kCellar), InvalidArgument);
    CHECK_THROWS_AS(known.trust_paired("cellar", kCellar), InvalidArgument);
    CHECK_THROWS_AS(known.remove("attic"), InvalidArgument);
    CHECK(text_of_list(home) == good + bad);
  }
  write_list(home, good.substr(0, good.size() - 1));
  CHECK(known.load().size() == 1);
  ::chmod(home.list_file().c_str(), 0644);
  CHECK_THROWS_WITH(known.load(), Contains("chmod 600"));
  write_list(home, std::string(1'000'000, 'x'));
  CHECK_THROWS_WITH(known.load(), Contains("longer than"));
}

TEST_CASE("a list has a bound, which strangers cannot use to push anyone out") {
  const Home home;
  const KnownMachines known = home.known();
  std::filesystem::create_directories(home.folder() + "/machines");
  ::chmod((home.folder() + "/machines").c_str(), 0700);
  std::string lines;
  for (std::uint32_t i = 0; i < KnownMachines::kMaxKnown; ++i) {
    const std::string number = std::to_string(i);
    lines += "seen " + std::string(64 - number.size(), '0') + number + " m" + number + "\n";
  }
  write_list(home, lines);
  CHECK_THAT(known.meet_asking("attic", kAttic).refusal, Contains("512 machines are known"));
  CHECK_THAT(known.meet_answering("attic", kAttic).refusal, Contains("512 machines are known"));
  CHECK_THROWS_WITH(known.add("attic", kAttic, tokens::Replace::no), Contains("512 machines"));
  CHECK(text_of_list(home) == lines);
  // A person's pairing takes the place of the oldest that was only seen.
  known.trust_paired("attic", kAttic);
  CHECK(known.load().size() == KnownMachines::kMaxKnown);
  CHECK(known.load()[0].name == "m1");
  for (std::uint32_t i = 1; i < KnownMachines::kMaxKnown; i += 100) known.remove("m" + std::to_string(i));
  std::string removed;
  for (std::uint32_t i = 0; i < KnownMachines::kMaxRemoved + 10; ++i) {
    const std::string number = std::to_string(i);
    removed += "removed " + std::string(64 - number.size(), 'f') + number + " m\n";
  }
  write_list(home, removed);
  known.trust_paired("attic", kAttic);
  CHECK(known.load().size() == KnownMachines::kMaxRemoved + 1);
  CHECK_FALSE(known.meet_asking("new", kOther).refusal.empty());
}

TEST_CASE("processes that meet machines at the same time remember all of them") {
  const Home home;
  constexpr std::uint32_t kProcesses = 6, kEach = 10;
  std::array<pid_t, kProcesses> children{};
  for (std::uint32_t process = 0; process < kProcesses; ++process) {
    children[process] = ::fork();
    REQUIRE(children[process] >= 0);
    if (children[process] != 0) continue;
    bool all = true;
    for (std::uint32_t i = 0; i < kEach; ++i) {
      const std::uint32_t number = process * kEach + i;
      all = all && home.known().meet_asking("m" + std::to_string(number), made_key(number + 100).public_key()).first;
    }
    ::_exit(all ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(home.known().load().size() == kProcesses * kEach);
}
