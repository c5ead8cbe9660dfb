#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace ringlet::job {

/// A machine that would run the program, in the order in which machines get their ranks.
struct Place {
  std::string name;
  int free_ranks = 0;
  std::optional<int> fixed_ranks{};  // gets these whatever the wish is
};

/// How many ranks to start, and how they are spread.
struct RankWish {
  std::optional<int> total;  // as evenly as the machines' free ranks allow; the first machines get more
  int per_machine = 1;       // where there is no total
};

/// How many ranks each place gets; consecutive numbers from 0, in the places' order. Some may get none where there are fewer ranks than
/// places. `invalid_argument` with the machine, its free ranks and what to do, where they do not fit.
Result<std::vector<int>> assign_ranks(const std::vector<Place>& places, const RankWish& wish);

}  // namespace ringlet::job
