#include "tools/trace/clock_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>

namespace ringlet::trace {

namespace {

/// So that sums over many clocks fit, whatever their parts say.
std::int64_t limited(std::int64_t time_ns) { return std::clamp(time_ns, -2 * kMaxTimeNs, 2 * kMaxTimeNs); }

std::int64_t apply(const std::vector<Reading>& readings, std::int64_t at) {
  if (readings.empty()) return at;
  const auto after = std::upper_bound(readings.begin(), readings.end(), at,
                                      [](std::int64_t time, const Reading& reading) { return time < reading.at_ns; });
  if (after == readings.begin()) return at + after->offset_ns;
  const Reading& before = *std::prev(after);
  if (after == readings.end() || after->at_ns == before.at_ns) return at + before.offset_ns;
  const double share = static_cast<double>(at - before.at_ns) / static_cast<double>(after->at_ns - before.at_ns);
  return at + before.offset_ns + std::llround(share * static_cast<double>(after->offset_ns - before.offset_ns));
}

/// The readings of `part` that compare it with the process that has rank 0 in a world of `other`; nothing where there are none.
std::vector<Reading> readings_between(const PartClock& part, const PartClock& other) {
  std::vector<Reading> found;
  for (const PartClock::Compared& compared : part.compared) {
    const std::uint32_t epoch = compared.epoch;
    // A world that was only tried may have the epoch of the one that came of it.
    const auto seat = std::find_if(part.seats.rbegin(), part.seats.rend(), [&](const Seat& one) { return one.epoch == epoch; });
    if (seat == part.seats.rend()) continue;
    const bool is_with_other = std::any_of(other.seats.begin(), other.seats.end(), [&](const Seat& one) {
      return one.rank == 0 && one.epoch == epoch && one.world == seat->world;
    });
    if (is_with_other) found.push_back(compared.reading);
  }
  return found;
}

/// The readings that lead from `part`'s clock to that of `other`.
std::optional<std::vector<Reading>> hop(const PartClock& part, const PartClock& other) {
  std::vector<Reading> readings = readings_between(part, other);
  for (const Reading& theirs : readings_between(other, part))
    readings.push_back({theirs.at_ns + theirs.offset_ns, -theirs.offset_ns, theirs.error_ns});
  // Copies of one virtual machine may call their clocks the same; then what was read is right.
  const bool is_one_clock = std::all_of(readings.begin(), readings.end(),
                                        [](const Reading& one) { return -one.error_ns <= one.offset_ns && one.offset_ns <= one.error_ns; });
  if (!part.clock.empty() && part.clock == other.clock && is_one_clock) return std::vector<Reading>{};
  if (readings.empty()) return std::nullopt;
  std::sort(readings.begin(), readings.end(), [](const Reading& one, const Reading& two) { return one.at_ns < two.at_ns; });
  return readings;
}

/// Appends a part for each world whose rank 0 has none. All of that world were compared with its clock, and so with each other.
std::vector<PartClock> with_absent_first_ranks(std::vector<PartClock> parts) {
  std::map<std::pair<std::string, std::uint32_t>, bool> has_first_rank;
  for (const PartClock& part : parts)
    for (const Seat& seat : part.seats) has_first_rank[{seat.world, seat.epoch}] |= seat.rank == 0;
  for (const auto& [world, has] : has_first_rank)
    if (!has) parts.push_back({"", {{world.first, world.second, 0}}, {}});
  return parts;
}

}  // namespace

std::int64_t ClockMap::to_common(std::int64_t own_ns) const {
  for (const auto& readings : hops_) own_ns = limited(apply(readings, own_ns));
  return own_ns;
}

std::int64_t ClockMap::error_ns() const {
  std::int64_t sum = 0;
  for (const auto& readings : hops_) {
    std::int64_t largest = 0;
    for (const Reading& reading : readings) largest = std::max(largest, reading.error_ns);
    sum = limited(sum + largest);
  }
  return sum;
}

std::vector<std::optional<ClockMap>> map_clocks(const std::vector<PartClock>& known_parts) {
  const std::vector<PartClock> parts = with_absent_first_ranks(known_parts);
  std::vector<std::optional<ClockMap>> maps(parts.size());
  if (parts.empty()) return maps;
  maps[0].emplace();
  for (std::deque<std::size_t> next{0}; !next.empty(); next.pop_front()) {
    const std::size_t known = next.front();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (maps[part]) continue;
      auto readings = hop(parts[part], parts[known]);
      if (!readings) continue;
      maps[part] = maps[known];
      if (!readings->empty()) maps[part]->hops_.insert(maps[part]->hops_.begin(), std::move(*readings));
      next.push_back(part);
    }
  }
  maps.resize(known_parts.size());
  return maps;
}

}  // namespace ringlet::trace
