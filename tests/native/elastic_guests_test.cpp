// Tests of guests that come to an elastic group and go.
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <list>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "native/joining.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/guest.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// What ranks add up in each round: ones, and whether rank 0 has seen enough.
using Round = std::vector<std::int32_t>;

/// A guest that adds with the group, and comes again when its world has ended, until rank 0 has seen enough, or `leaves`.
void visit(const std::string& door, const std::atomic<bool>& leaves) {
  const Address address = parse_address(door).value();
  while (!leaves) {
    NativeGuest guest(address, "", "a guest");
    if (!guest.meet().ok()) continue;
    while (!leaves) {
      Round round{1, 0};
      if (!guest.run(make_all_reduce(ReduceOp::sum, round, round, 1, guest.options())).ok()) break;
      expect(round[0] == guest.options().size, "the ranks of a round");
      if (round[1] > 0) {
        (void)guest.agree(true);
        return guest.close();
      }
      if (!guest.agree(true).ok()) break;
    }
  }
}

/// A native rank that adds and admits until `enough`, which rank 0 asks, says so. The others have just admitted one that has joined.
int work(Group world, const std::function<bool(const Group&)>& enough, bool has_joined = false) {
  int rounds = 0;
  while (true) {
    try {
      if (!std::exchange(has_joined, false))
        if (auto next = world.admit()) world = next->world;
      Round round{1, world.rank() == 0 && enough(world) ? 1 : 0};
      world.all_sum(round);
      expect(round[0] == world.size(), "the ranks of a round");
      if (world.agree(true)) {
        ++rounds;
        if (round[1] > 0) return rounds;
      }
      pass(std::chrono::milliseconds(1));
    } catch (const Error& error) {
      expect(error.status().code() == Errc::peer_lost || error.status().code() == Errc::cancelled, error.what());
      world = world.reform().world;
    }
  }
}

/// Holds once so many guests have been there for some rounds.
class Steady {
 public:
  bool with(const Group& world, int guests) {
    rounds_ = world.guests() == guests ? rounds_ + 1 : 0;
    return rounds_ > 20;
  }

 private:
  int rounds_ = 0;
};

}  // namespace

TEST_CASE("guests come to a group that runs, go, and come again") {
  for (const int natives : {1, 2}) {
    CAPTURE(natives);
    std::atomic<bool> first_leaves{false}, never{false};
    std::list<Process> guests;
    run_elastic(natives, [&](Group& world) {
      const bool leads = world.rank() == 0;
      const std::string door = world.door();
      if (leads) {
        guests.emplace_back([&, door] { visit(door, first_leaves); });
        guests.emplace_back([&, door] { visit(door, never); });
      }
      int phase = 0;
      Steady steady;
      const int rounds = work(std::exchange(world, Group()), [&](const Group& now) {
        if (phase == 0 && steady.with(now, 2)) first_leaves = true, ++phase;
        if (phase == 1 && steady.with(now, 1)) {
          guests.emplace_back([&, door] { visit(door, never); });
          ++phase;
        }
        return phase == 2 && steady.with(now, 2);
      });
      expect(rounds > 60, "rounds");
    });
    for (Process& guest : guests) guest.join();
  }
}

TEST_CASE("a native rank is lost while guests are there, rank 0 too") {
  for (const int leaver : {0, 1}) {
    CAPTURE(leaver);
    std::atomic<bool> never{false};
    std::list<Process> guests;
    Doors doors(2);
    run_elastic(2, [&](Group& world) {
      doors.open(world);
      const int origin = world.rank();
      // The guests know the door of the rank that stays.
      if (origin != leaver)
        for (int guest = 0; guest < 2; ++guest) guests.emplace_back([&, door = world.door()] { visit(door, never); });
      Steady steady;
      if (origin == leaver) {
        Group own = std::exchange(world, Group());
        while (own.guests() != 2) {
          if (auto next = own.admit()) own = next->world;
          if (own.guests() == 2) break;
          Round round{1, 0};
          own.all_sum(round);
          (void)own.agree(true);
        }
        return;
      }
      (void)work(std::exchange(world, Group()), [&](const Group& now) { return now.size() == 3 && steady.with(now, 2); });
    });
    for (Process& guest : guests) guest.join();
  }
}

TEST_CASE("a group begins with the guests that it waits for, at whichever door they knock") {
  std::atomic<bool> never{false};
  std::list<Process> guests;
  Doors doors(2);
  run_elastic(2, [&](Group& world) {
    doors.open(world);
    if (world.rank() == 0)
      for (int rank = 0; rank < 2; ++rank) guests.emplace_back([&, rank] { visit(doors.of(rank), never); });
    const auto begun = native::await_first_guests(std::exchange(world, Group()).shared().shared_from_this(), 2, Duration::seconds(60));
    expect(begun->options().size == 4, "all are there");
    int rounds = 0;
    (void)work(Group(begun), [&](const Group&) { return ++rounds > 5; });
  });
  for (Process& guest : guests) guest.join();
}

TEST_CASE("a native rank that a world with guests has left out joins again by what it has learnt in that world") {
  std::atomic<bool> never{false};
  std::list<Process> guests;
  std::latch others_go_on(1);
  run_ranks(
      3,
      [&](Group& world) {
        const int origin = world.rank();
        if (origin == 0) guests.emplace_back([&, door = world.door()] { visit(door, never); });
        Group begun(native::await_first_guests(std::exchange(world, Group()).shared().shared_from_this(), 1, Duration::seconds(60)));
        expect(begun.size() == 4 && begun.guests() == 1, "it begins with a guest");
        Steady steady;
        bool others_know = false;
        const auto enough = [&](const Group& now) {
          if (now.epoch() > 1 && !std::exchange(others_know, true)) others_go_on.count_down();
          return now.size() == 4 && now.epoch() > 1 && steady.with(now, 1);
        };
        if (origin == 2) {
          stand_still(begun, others_go_on);
          const std::string reason = failure_of<PeerLost>([&] { (void)work(begun, enough); });
          expect(reason.find("the others have gone on without rank 2") != std::string::npos, reason);
          begun = begun.rejoin();
        }
        (void)work(std::move(begun), enough, origin == 2);
      },
      impatient);
  for (Process& guest : guests) guest.join();
}

TEST_CASE("a guest ends the epoch on purpose, in its own name alone") {
  // By what each world with the guest is ended: a revocation, and lies about who has ended it.
  const std::vector<Status> lies{{Errc::cancelled, "rank 0 has ended the epoch", 0}, {Errc::cancelled, "somebody has", -1}};
  std::list<Process> guests;
  std::atomic<std::uint32_t> epoch_of_guest{0};
  run_elastic(2, [&](Group& world) {
    if (world.rank() == 0)
      guests.emplace_back([&, address = parse_address(world.door()).value()] {
        NativeGuest guest(address, "", "a guest");
        for (std::size_t life = 0; life <= lies.size(); ++life) {
          while (!guest.meet().ok()) {
          }
          epoch_of_guest = guest.epoch();
          expect(guest.agree(true).ok(), "all are there");
          life == 0 ? guest.revoke() : guest.fail(lies[life - 1]);
          guest.close();
        }
      });
    for (std::size_t life = 0; life <= lies.size(); ++life) {
      for (int round = 0; world.guests() == 0; ++round) {
        expect(round < kRounds, "the guest comes");
        if (auto next = world.admit()) world = next->world;
        pass(std::chrono::milliseconds(1));
      }
      try {
        (void)world.agree(true);
        expect(world.epoch() == epoch_of_guest, "the guest counts the epochs as the others");
        Round round{1, 0};
        world.all_sum(round);
        expect(false, "the guest ends this world");
      } catch (const Error& error) {
        expect(error.status().code() == (life == 0 ? Errc::cancelled : Errc::peer_lost), error.what());
        expect(error.status().rank() == 2, error.what());
      }
      const Reformed reformed = world.reform();
      expect(reformed.lost == std::vector<int>{2}, "the guest alone is not there");
      world = reformed.world;
    }
  });
  for (Process& guest : guests) guest.join();
}

TEST_CASE("where they do not come, all ranks say how many have") {
  run_elastic(2, [&](Group& world) {
    const auto shared = std::exchange(world, Group()).shared().shared_from_this();
    const std::string text = failure_of<Timeout>([&] { (void)native::await_first_guests(shared, 3, Duration::milliseconds(100)); });
    expect(text.find("only 0 of 3 guests have come in time") != std::string::npos, text);
  });
}
