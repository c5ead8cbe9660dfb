// Kills and adds ranks of a training for minutes, and counts what goes wrong. `scripts/soak --minutes` runs it, and a test does for
// seconds.
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include "sim/sim_random.hpp"
#include "tests/native/training_town.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kUsage[] =
    "Usage: soak_training [--seconds N] [--seed N]\n"
    "\n"
    "Trains with two to six processes, and kills, adds or stops one of them about each second. Then it repeats all steps undisturbed, and\n"
    "compares. The exit code is 0 if nothing went wrong; the last lines say what did. Ctrl-C ends it early, with the same lines; a second "
    "one at once.\n"
    "\n"
    "  --seconds N  for so long: 60 unless given\n"
    "  --seed N     of the order of events: the time unless given\n"
    "\n"
    "Example: soak_training --seconds 600\n";

constexpr std::size_t kFewest = 2, kMost = 6;
constexpr long kAllowedKilobytes = 4096;  // what allocators keep differs that much
// Of so many samples the least counts, since some memory and descriptors are held for a moment.
constexpr std::size_t kSamples = 3;
const TownTraining kTraining{20'000, 1 << 16, 10ms};

std::atomic<bool> interrupted;

long anonymous_kilobytes(::pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  long kilobytes = 0;
  for (std::string word; file >> word;)
    if (word == "RssAnon:") file >> kilobytes;
  return kilobytes;
}

long descriptors(::pid_t pid) {
  DIR* directory = ::opendir(("/proc/" + std::to_string(pid) + "/fd").c_str());
  if (directory == nullptr) return 0;
  long count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

/// By how much something has grown, which differs with the number of ranks.
class Growth {
 public:
  void sample(std::size_t ranks, long value) { values_[ranks].push_back(value); }
  /// The most of all numbers of ranks that there were twice or more often.
  std::optional<long> most() const {
    std::optional<long> most;
    for (const auto& [ranks, values] : values_)
      if (values.size() >= 2 * kSamples)
        most = std::max(most.value_or(0), *std::min_element(values.end() - kSamples, values.end()) -
                                              *std::min_element(values.begin(), values.begin() + kSamples));
    return most;
  }

 private:
  std::map<std::size_t, std::vector<long>> values_;
};

struct Options {
  std::chrono::seconds duration = 60s;
  std::uint64_t seed = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
};

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), random_(options.seed), town_(kTraining, processes_of(options)) {}

  /// Returns the exit code.
  int run() {
    std::printf("soak: seed %llu\n", static_cast<unsigned long long>(options_.seed));
    if (!town_.go_on()) ++hangs_;
    const auto begin = Clock::now(), middle = begin + options_.duration / 2, end = begin + options_.duration;
    // One rank lives through each half, so that its memory can be compared. It is not rank 0.
    for (const auto until : {middle, end}) {
      elder_ = std::prev(town_.here().end())->first;
      Growth memory, files;
      while (Clock::now() < until && !interrupted && hangs_ == 0) {
        disturb();
        // The first events fill what allocators keep for the next ones.
        if (Clock::now() > until - options_.duration * 3 / 8) sample(memory, files);
        say_progress(std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin));
      }
      memory_growth_ = std::max(memory_growth_, memory.most());
      file_growth_ = std::max(file_growth_, files.most());
    }
    return conclude();
  }

 private:
  static RankProcesses processes_of(const Options& options) {
    RankProcesses processes{.encrypt = options.seed % 2 == 1, .heartbeat_timeout = 1500ms, .life = options.duration + 120s};
    // The terminal's Ctrl-C is for the parent alone.
    processes.prepare = [](InitOptions&) { ::signal(SIGINT, SIG_IGN); };
    return processes;
  }

  /// Something happens to one rank, or to two at once, and all that are left go on.
  void disturb() {
    pass(std::chrono::microseconds(300'000 + random_.below(600'000)));
    const bool comes = town_.size() <= kFewest || (town_.size() < kMost && random_.chance(500));
    if (comes) town_.grow(), ++joined_;
    if (comes) pass(std::chrono::microseconds(random_.below(20'000)));
    const auto begin = Clock::now();
    if (!comes || (town_.size() > kFewest + 1 && random_.chance(300))) {
      if (!comes && random_.chance(150)) return stand_still();
      town_.kill(victim());
      ++killed_;
    }
    if (!town_.go_on()) ++hangs_;
    milliseconds_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }

  void sample(Growth& memory, Growth& files) const {
    for (std::size_t i = 0; i < kSamples; ++i) {
      memory.sample(town_.size(), anonymous_kilobytes(town_.pid(elder_)));
      files.sample(town_.size(), descriptors(town_.pid(elder_)));
      pass(30ms);
    }
  }

  void stand_still() {
    const int number = victim();
    town_.stop(number);
    ++stopped_;
    if (!town_.go_on()) ++hangs_;
    town_.wake(number);
    if (!town_.go_on()) ++hangs_;
  }

  int victim() {
    while (true)
      if (const int number = town_.any(random_); number != elder_) return number;
  }

  bool is_silent_for_long() {
    if (Clock::now() < said_ + 10s) return false;
    said_ = Clock::now();
    return true;
  }

  void say_progress(std::chrono::seconds passed) {
    if (!is_silent_for_long()) return;
    std::printf("soak: %d s: %d ranks, step %llu; %d killed, %d joined, %d stopped and back\n", static_cast<int>(passed.count()),
                static_cast<int>(town_.size()), static_cast<unsigned long long>(town_.journal().size()), killed_, joined_, stopped_);
    std::fflush(stdout);
  }

  int conclude() {
    const bool ended_well = hangs_ == 0 && town_.end_well();
    const auto steps = town_.journal().size();
    std::printf("soak: repeating %llu steps undisturbed\n", static_cast<unsigned long long>(steps));
    std::fflush(stdout);
    const auto lost = town_.journal().gaps();
    int wrong = town_.journal().differences();
    ::signal(SIGINT, SIG_DFL);
    const auto say_repeated = [&](std::uint64_t done) {
      if (!is_silent_for_long()) return;
      std::printf("soak: %llu of %llu steps repeated\n", static_cast<unsigned long long>(done), static_cast<unsigned long long>(steps));
      std::fflush(stdout);
    };
    if (const auto differs = lost == 0 ? first_difference(town_.journal(), kTraining, say_repeated) : std::nullopt) {
      std::printf("soak: step %llu has other bits than in an undisturbed run\n", static_cast<unsigned long long>(*differs));
      ++wrong;
    }
    std::sort(milliseconds_.begin(), milliseconds_.end());
    std::printf("soak: %d killed, %d joined, %d stopped and back, %llu steps\n", killed_, joined_, stopped_,
                static_cast<unsigned long long>(steps));
    if (!milliseconds_.empty())
      std::printf("soak: until all had committed a step again: %.0f ms in the median, %.0f ms at most\n",
                  milliseconds_[milliseconds_.size() / 2], milliseconds_.back());
    std::printf("hangs: %d\nranks that ended badly: %s\nsteps with wrong bits: %d\nlost steps: %llu\n", hangs_, ended_well ? "0" : "some",
                wrong, static_cast<unsigned long long>(lost));
    if (memory_growth_ && descriptors(::getpid()) != 0)
      std::printf("growth of memory: %ld KiB (at most %ld)\ngrowth of descriptors: %ld\n", *memory_growth_, kAllowedKilobytes,
                  file_growth_.value_or(0));
    else
      std::printf("growth of memory and descriptors: not known, since it was too short or this system has no /proc\n");
    const bool well = hangs_ == 0 && ended_well && wrong == 0 && lost == 0 && memory_growth_.value_or(0) <= kAllowedKilobytes &&
                      file_growth_.value_or(0) <= 0;
    std::printf("soak: %s\n", well ? "nothing went wrong" : "something went wrong");
    return well ? 0 : 1;
  }

  const Options options_;
  SimRandom random_;
  TrainingTown town_;
  int elder_ = -1;
  int hangs_ = 0, killed_ = 0, joined_ = 0, stopped_ = 0;
  std::optional<long> memory_growth_, file_growth_;
  std::vector<double> milliseconds_;
  Clock::time_point said_ = Clock::now();
};

/// Returns the exit code where the program is to end at once, or -1.
int read_arguments(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    char* end = nullptr;
    const unsigned long long value = i + 1 < count ? std::strtoull(arguments[i + 1], &end, 10) : 0;
    if ((name != "--seconds" && name != "--seed") || end == nullptr || *end != '\0' || end == arguments[i + 1]) {
      std::fprintf(stderr, "soak_training: '%s' is no option, or has no number behind it; see --help\n", name.c_str());
      return 2;
    }
    if (name == "--seconds")
      options.duration = std::chrono::seconds(value);
    else
      options.seed = value;
  }
  return -1;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (const int code = read_arguments(count, arguments, options); code >= 0) return code;
#ifdef M_ARENA_MAX
  // Each thread that comes and goes would else leave its part of the heap with another arena, which looks like a leak.
  ::mallopt(M_ARENA_MAX, 1);
#endif
  ::signal(SIGINT, [](int) { interrupted = true; });
  try {
    return Soak(options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak_training: %s\n", error.what());
    return 1;
  }
}
