#include <catch2/catch.hpp>

#include "tests/core/random_beacon.hpp"
#include "tests/core/sim_datagrams.hpp"
#include "tools/discovery/directory.hpp"

using namespace ringlet;
using namespace ringlet::discovery;
using namespace ringlet::test;

namespace {

constexpr auto kPresence = Beacon::Kind::presence;
constexpr auto kGoodbye = Beacon::Kind::goodbye;

/// A directory that logs its changes: "+attic" appeared, "~attic" changed, "-attic" left.
struct Notebook {
  explicit Notebook(DirectoryLimits limits = {})
      : directory(
            [this](Change change, const Machine& machine) {
              log += change == Change::appeared ? "+" : change == Change::changed ? "~" : "-";
              log += machine.profile.name + " ";
            },
            limits) {}

  bool take(std::uint64_t instance, std::uint64_t sequence, const std::string& name, Beacon::Kind kind = kPresence,
            std::uint16_t from = 1) {
    Beacon beacon{kind, instance, sequence, {}};
    beacon.profile.name = name;
    return directory.take(beacon, {address_on(0, from), 1, 0, 0}, now);
  }
  void wait(std::int64_t milliseconds) {
    now = now + Duration::milliseconds(milliseconds);
    directory.expire(now);
  }

  std::string log;
  Directory directory;
  Instant now{1'000'000'000};
};

}  // namespace

TEST_CASE("machines appear, change and leave") {
  Notebook book;
  CHECK(book.take(1, 1, "attic"));
  CHECK(book.take(2, 1, "cellar"));
  CHECK(book.take(1, 2, "attic"));
  CHECK(book.take(1, 3, "roof"));
  CHECK(book.take(2, 2, "cellar", kGoodbye));
  book.wait(3'999);
  CHECK(book.log == "+attic +cellar ~roof -cellar ");
  book.wait(1);
  CHECK(book.log == "+attic +cellar ~roof -cellar -roof ");
  CHECK(book.directory.machines().empty());
  CHECK_FALSE(book.directory.next_deadline());
}

TEST_CASE("other free memory is not a change") {
  Notebook book;
  Beacon beacon{kPresence, 1, 1, {}};
  beacon.profile.devices = {{"cpu", 4, 100, 50, "avx2"}};
  const DatagramSource from{address_on(0, 1), 1, 0, 0};
  book.directory.take(beacon, from, book.now);
  beacon.sequence = 2;
  beacon.profile.devices[0].free_memory_bytes = 40;
  CHECK(book.directory.take(beacon, from, book.now));
  CHECK(book.log == "+ ");
  CHECK(book.directory.machines().at(1).profile.devices[0].free_memory_bytes == 40);
}

TEST_CASE("old news is no news: delayed, doubled and replayed beacons change nothing") {
  Notebook book;
  book.take(1, 5, "attic");
  CHECK_FALSE(book.take(1, 4, "old"));
  CHECK_FALSE(book.take(1, 5, "again"));
  CHECK_FALSE(book.take(1, 4, "", kGoodbye));
  // A replayed beacon does not keep a silent machine alive, either.
  book.wait(3'000);
  CHECK_FALSE(book.take(1, 5, "attic"));
  book.wait(1'000);
  CHECK(book.log == "+attic -attic ");
  CHECK_FALSE(book.take(1, 5, "attic"));
  CHECK(book.take(1, 6, "attic"));
  CHECK(book.take(1, 9, "attic", kGoodbye));
  CHECK_FALSE(book.take(1, 8, "attic"));
  CHECK_FALSE(book.take(3, 8, "never here", kGoodbye));
  CHECK(book.log == "+attic -attic +attic -attic ");
}

TEST_CASE("a machine is seen at several addresses, of which the best is told") {
  Notebook book;
  Beacon beacon{kPresence, 1, 1, {}};
  beacon.profile.interfaces = {{"eth0", {address_on(0, 3)}}};
  for (std::uint16_t from = 1; from <= 9; ++from) book.directory.take(beacon, {address_on(0, from), from, 0, 0}, book.now);
  const Machine& machine = book.directory.machines().at(1);
  CHECK(machine.sightings.size() == kMaxSightings);
  CHECK(machine.beacons == 1);
  CHECK(best_source(machine).address == address_on(0, 3));
  // A source from which nothing is heard any more is forgotten.
  for (beacon.sequence = 2; beacon.sequence < 8; ++beacon.sequence, book.wait(1'000))
    book.directory.take(beacon, {address_on(0, 7), 7, 0, 0}, book.now);
  CHECK(machine.sightings.size() == 1);
  CHECK(best_source(machine).address == address_on(0, 7));
}

TEST_CASE("who falls silent is asked once a second, by as much as its beacon was long") {
  Notebook book;
  book.take(1, 1, "attic");
  CHECK(book.directory.ask_silent(book.now).empty());
  book.wait(1'299);
  CHECK(book.directory.ask_silent(book.now).empty());
  CHECK(*book.directory.next_deadline() == book.now + Duration::milliseconds(1));
  book.wait(1);
  const auto questions = book.directory.ask_silent(book.now);
  REQUIRE(questions.size() == 1);
  CHECK(questions[0].to.address == address_on(0, 1));
  CHECK(questions[0].bytes < 50);
  CHECK(book.directory.ask_silent(book.now).empty());
  book.wait(1'000);
  CHECK(book.directory.ask_silent(book.now).size() == 1);
  CHECK(book.take(1, 2, "attic"));
  book.wait(3'000);
  CHECK(book.log == "+attic ");
}

TEST_CASE("one address cannot fill the directory") {
  Notebook book;
  for (std::uint64_t instance = 1; instance <= 10'000; ++instance) book.take(instance, 1, "flood", kPresence, 7);
  CHECK(book.directory.machines().size() == 16);
  CHECK(book.take(50'000, 1, "attic", kPresence, 1));
}

TEST_CASE("a flood from several addresses that stays hides nobody else") {
  Notebook book;
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    for (std::uint64_t instance = 1; instance <= 400; ++instance)
      book.take(instance, sequence, "flood", kPresence, static_cast<std::uint16_t>(100 + instance % 20));
    book.wait(100);
  }
  book.wait(1'000);
  CHECK(book.directory.machines().size() == 256);
  for (std::uint64_t instance = 1; instance <= 10; ++instance)
    CHECK(book.take(1'000 + instance, 1, "home", kPresence, static_cast<std::uint16_t>(instance)));
  CHECK(book.directory.machines().size() == 256);
  for (std::uint64_t instance = 500; instance <= 900; ++instance)
    book.take(instance, 1, "flood", kPresence, static_cast<std::uint16_t>(100 + instance % 20));
  CHECK(book.directory.find([](const Machine& machine) { return machine.profile.name == "home"; }).size() == 10);
}

TEST_CASE("a flood from many addresses pushes out no established machine, and its memory is bounded") {
  Notebook book({.machines = 32, .departed = 40});
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    book.take(1, sequence, "attic", kPresence, 1);
    book.wait(100);
  }
  SimRandom random(1);
  for (int round = 0; round < 3'000; ++round) {
    book.take(1'000 + random.below(1 << 20), random.below(100), "flood", random.chance(100) ? kGoodbye : kPresence,
              static_cast<std::uint16_t>(2 + random.below(60'000)));
    if (round % 100 == 0) {
      book.take(1, 10 + static_cast<std::uint64_t>(round), "attic", kPresence, 1);
      book.wait(100);
    }
    REQUIRE(book.directory.machines().size() <= 32);
    REQUIRE(book.directory.machines().count(1) == 1);
  }
  CHECK(book.log.find("-attic") == std::string::npos);
  // A machine that has not become established makes room for another.
  book.wait(600);
  CHECK(book.take(2, 1, "cellar", kPresence, 60'001));
}
