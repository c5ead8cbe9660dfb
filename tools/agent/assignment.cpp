#include "tools/agent/assignment.hpp"

#include <fmt/format.h>

#include <numeric>

namespace ringlet::agent {

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
  for (const Place& place : places)
    if (place.free_ranks < wish.per_machine)
      return Status{Errc::invalid_argument, fmt::format("{} has {} free ranks, and {} are asked for on each machine; {}", place.name,
                                                        place.free_ranks, wish.per_machine, kAdvice)};
  return std::vector<int>(places.size(), wish.per_machine);
}

}  // namespace ringlet::agent
