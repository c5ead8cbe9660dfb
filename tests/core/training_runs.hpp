#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_training.hpp"

// What the campaigns of simulated trainings have in common.
namespace ringlet::test {

using Faults = std::vector<TrainingFault>;

inline GroupSetup calm(int size) {
  GroupSetup setup;
  setup.size = size;
  setup.paths = PathOptions::calm();
  return setup;
}

/// Every so many cases are tried, and more of them where RINGLET_SEED_PERCENT asks for more.
inline std::uint64_t every(std::uint64_t count) { return std::max<std::uint64_t>(1, count * 100 / share_of(100)); }

inline bool is_of_link(const TrainingFault& fault) {
  using Kind = TrainingFault::Kind;
  return fault.kind == Kind::link_is_cut || fault.kind == Kind::link_is_deaf || fault.kind == Kind::link_is_reset;
}

inline bool lasts_until_healed(const TrainingFault& fault) {
  using Kind = TrainingFault::Kind;
  return is_of_link(fault) || fault.kind == Kind::stands_still || fault.kind == Kind::power_fails || fault.kind == Kind::network_parts;
}

/// Counts the runs of a test, and checks each.
class Runs {
 public:
  ~Runs() {
    std::printf("%s: %llu runs\n", Catch::getResultCapture().getCurrentTestName().c_str(), static_cast<unsigned long long>(count_));
  }
  /// `wrong` is what went wrong in a run of these faults.
  void expect_nothing_wrong(const std::string& wrong, int size, const Faults& faults) {
    ++count_;
    if (wrong.empty()) return;
    for (const TrainingFault& fault : faults)
      UNSCOPED_INFO("fault " << static_cast<int>(fault.kind) << " of " << fault.rank << ", " << fault.other << " at " << fault.event);
    CAPTURE(size);
    REQUIRE(wrong == "");
  }

 private:
  std::uint64_t count_ = 0;
};

/// Returns the first thing that goes wrong in any of these runs, or "".
inline std::string run_seeds(std::string (*run_one)(std::uint64_t, BrokenTrainer), std::uint64_t count, BrokenTrainer broken) {
  for (std::uint64_t seed = 0; seed < count; ++seed)
    if (std::string wrong = run_one(seed, broken); !wrong.empty()) return wrong;
  return {};
}

/// Something of this kind must be wrong.
inline void finds(const char* text, const std::string& wrong) {
  CAPTURE(wrong, text);
  CHECK(wrong.rfind(text, 0) == 0);
}

}  // namespace ringlet::test
