// Processes join an elastic group and are killed, at any moment of either.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"
#include "tests/shared_by_processes.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

constexpr int kPlaces = 4;
constexpr int kFirst = 2;  // processes that begin the group
constexpr int kKills = 10;
constexpr unsigned kPatienceSeconds = 60;
constexpr std::uint64_t kProof = 3;  // steps that show that a process goes on

using Clock = std::chrono::steady_clock;

/// What the process at a place has done.
struct Progress {
  std::atomic<bool> is_member, wrong;
  std::atomic<std::uint64_t> steps;
};
struct Crew {
  std::array<Progress, kPlaces> places;
  std::atomic<bool> stop;
};

/// Doors with ports that the system gives to nobody by itself.
std::string door_of(int place) { return "127.0.0.1:" + std::to_string(20'000 + ::getpid() % 1000 * kPlaces + place); }

/// The numbers of all members' processes, by rank.
std::vector<std::int32_t> members_of(Group& group, std::int32_t own) {
  std::vector<std::int32_t> mine{own}, all(static_cast<std::size_t>(group.size()));
  group.all_gather(mine, all);
  return all;
}

/// Adds, and admits whoever knocks, until it is told to stop, on all ranks in the same step.
void work(Group group, int place, Progress& own, const std::atomic<bool>& stop) {
  const std::int32_t number = 1 << place;
  own.is_member = true;
  while (true) {
    try {
      std::vector<std::int32_t> members = members_of(group, number);
      for (std::uint32_t step = 0;; ++step) {
        if (step % 4 == 3)
          if (auto next = group.admit()) {
            group = next->world;
            break;
          }
        // Large enough for a ring now and then, so that ranks are killed in the midst of it.
        std::vector<std::int32_t> values(step % 5 == 0 ? 100'000 : 100, number);
        values.back() = stop && group.rank() == 0 ? 1 : 0;
        group.all_sum(values);
        const std::int32_t sum = std::accumulate(members.begin(), members.end(), 0);
        if (std::any_of(values.begin(), values.end() - 1, [&](std::int32_t value) { return value != sum; })) own.wrong = true;
        ++own.steps;
        if (values.back() != 0) return;
      }
    } catch (const PeerLost&) {
      group = group.reform().world;
    }
  }
}

class Crowd {
 public:
  Crowd(bool encrypt) : encrypt_(encrypt), coordinator_(open_loopback_socket()) {
    for (int place = 0; place < kPlaces; ++place) doors_.push_back(door_of(place));
    for (int place = 0; place < kFirst; ++place) start(place, true);
    ::close(coordinator_.descriptor);
  }
  ~Crowd() {
    for (const int place : alive()) kill(place);
  }

  /// A process that joins at any door.
  void start(int place) { start(place, false); }
  void kill(int place) {
    ::kill(pid(place), SIGKILL);
    (void)await(place);
  }
  /// Returns the exit code, or -1 where a signal has ended it.
  int await(int place) {
    int status = 0;
    REQUIRE(::waitpid(pid(place), &status, 0) == pid(place));
    pid(place) = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::vector<int> alive() {
    std::vector<int> places;
    for (int place = 0; place < kPlaces; ++place)
      if (pid(place) != 0) places.push_back(place);
    return places;
  }
  std::vector<int> members() {
    std::vector<int> places = alive();
    std::erase_if(places, [&](int place) { return !progress(place).is_member; });
    return places;
  }
  /// Waits until all these processes are members that go on.
  bool go_on(const std::vector<int>& places) {
    std::array<std::uint64_t, kPlaces> before{};
    for (const int place : places) before[static_cast<std::size_t>(place)] = progress(place).steps;
    const auto end = Clock::now() + std::chrono::seconds(kPatienceSeconds);
    while (!std::all_of(places.begin(), places.end(),
                        [&](int place) { return progress(place).steps >= before[static_cast<std::size_t>(place)] + kProof; })) {
      if (Clock::now() > end || has_lost_one()) return false;
      pass(100us);
    }
    return true;
  }
  Progress& progress(int place) { return (*crew_).places[static_cast<std::size_t>(place)]; }
  void stop() { (*crew_).stop = true; }

 private:
  /// Whether a process has ended by itself.
  bool has_lost_one() {
    for (const int place : alive()) {
      siginfo_t info{};
      REQUIRE(::waitid(P_PID, static_cast<::id_t>(pid(place)), &info, WEXITED | WNOHANG | WNOWAIT) == 0);
      if (info.si_pid == 0) continue;
      std::fprintf(stderr, "the process at place %d has ended by itself, with code %d (%d)\n", place, info.si_status, info.si_code);
      return true;
    }
    return false;
  }

  ::pid_t& pid(int place) { return pids_[static_cast<std::size_t>(place)]; }

  void start(int place, bool is_first) {
    Progress& own = progress(place);
    own.is_member = false;
    own.steps = 0;
    pid(place) = ::fork();
    if (pid(place) != 0) return;
    ::alarm(2 * kPatienceSeconds);
    ::signal(SIGABRT, SIG_DFL);
    try {
      InitOptions options;
      if (encrypt_) options.token = "4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16";
      options.elastic = true;
      options.on_split = OnSplit::wait;
      options.status = false;
      options.door = doors_[static_cast<std::size_t>(place)];
      options.listen = "127.0.0.1";
      options.connect_timeout = std::chrono::seconds(kPatienceSeconds);
      if (is_first) {
        options.rank = place;
        options.world_size = kFirst;
        options.coordinator = to_string(coordinator_.address);
        // A port that another process holds open would hide that rank 0 has ended.
        if (place != 0) ::close(coordinator_.descriptor);
        if (place == 0) options.listen_fd = coordinator_.descriptor;
      } else {
        std::string doors;
        for (int other = 0; other < kPlaces; ++other)
          if (other != place) doors += doors_[static_cast<std::size_t>(other)] + ",";
        options.join = doors;
      }
      work(init(options), place, own, (*crew_).stop);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the process at place %d: %s\n", place, error.what());
      ::_exit(1);
    }
  }

  const bool encrypt_;
  const LoopbackSocket coordinator_;
  std::vector<std::string> doors_;
  SharedByProcesses<Crew> crew_;
  std::array<::pid_t, kPlaces> pids_{};
};

}  // namespace

// The moments are random on purpose, so this test waits for time to pass.
TEST_CASE("processes join and are killed at any moment, and the others go on") {
  Campaign campaign("processes join an elastic group and are killed, members or not, at any moment: all members do the next steps");
  for (const auto seed : seeds(6)) {
    CAPTURE(seed);
    SimRandom random(seed);
    Crowd crowd(seed % 2 == 1);
    REQUIRE(crowd.go_on(crowd.alive()));
    for (int kill = 0; kill < kKills; ++kill) {
      CAPTURE(kill);
      campaign.begin();
      for (int place = 0; place < kPlaces; ++place)
        if (const auto alive = crowd.alive(); !std::count(alive.begin(), alive.end(), place) && random.below(3) != 0) crowd.start(place);
      pass(std::chrono::microseconds(random.below(50'000)));
      // Somebody has to stay whom the others can join.
      std::vector<int> victims = crowd.alive();
      if (const auto members = crowd.members(); members.size() == 1) std::erase(victims, members.front());
      const auto begin = Clock::now();
      if (!victims.empty()) crowd.kill(victims[random.below(victims.size())]);
      REQUIRE(crowd.go_on(crowd.members()));
      campaign.goes_well_since(begin);
    }
    REQUIRE(crowd.go_on(crowd.alive()));
    crowd.stop();
    for (const int place : crowd.alive()) {
      CAPTURE(place);
      CHECK(crowd.await(place) == 0);
      CHECK_FALSE(crowd.progress(place).wrong);
    }
  }
}
