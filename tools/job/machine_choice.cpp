#include "tools/job/machine_choice.hpp"

#include <fmt/format.h>

namespace ringlet::job {

namespace {

constexpr const char* kAdvice = "wait until other jobs have ended, ask for fewer, or let its owner raise `ringlet up --max-ranks`";

Result<std::vector<int>> spread(const std::vector<Place>& places, int total) {
  std::vector<int> ranks(places.size(), 0);
  int left = total;
  // A rank for each place in turn, as long as any has room.
  for (bool any = true; left > 0 && any;) {
    any = false;
    for (std::size_t i = 0; i < places.size() && left > 0; ++i) {
      if (ranks[i] >= places[i].free_ranks) continue;
      ++ranks[i];
      --left;
      any = true;
    }
  }
  if (left == 0) return ranks;
  std::string all;
  for (const Place& place : places) all += fmt::format("{}{} has {}", all.empty() ? "" : ", ", place.name, place.free_ranks);
  return Status{Errc::invalid_argument, fmt::format("{} ranks do not fit: of free ranks {}; {}", total, all, kAdvice)};
}

}  // namespace

Result<std::vector<int>> assign_ranks(const std::vector<Place>& places, const RankWish& wish) {
  if (wish.total) return spread(places, *wish.total);
  std::vector<int> ranks;
  for (const Place& place : places) {
    ranks.push_back(place.fixed_ranks.value_or(wish.per_machine));
    if (!place.fixed_ranks && place.free_ranks < wish.per_machine)
      return Status{Errc::invalid_argument, fmt::format("{} has {} free ranks, and {} are asked for on each machine; {}", place.name,
                                                        place.free_ranks, wish.per_machine, kAdvice)};
  }
  return ranks;
}

}  // namespace ringlet::job
