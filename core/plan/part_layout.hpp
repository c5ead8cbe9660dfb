#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringlet {

/// A half-open range of elements.
struct ElementRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  constexpr std::size_t count() const { return end - begin; }
  friend constexpr bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// Parts begin at multiples of this number of elements, so that no two ranks reduce parts of one cache line.
inline constexpr std::size_t kPartGranule = 16;

/// Returns the part of `count` elements that rank `rank` of `size` owns in an all-reduce. A pure function of its arguments; parts may be
/// empty.
constexpr ElementRange part_of(std::size_t count, int size, int rank) {
  const std::size_t granules = (count + kPartGranule - 1) / kPartGranule;
  const auto boundary = [&](int index) {
    const auto ranks = static_cast<std::size_t>(size);
    const auto i = static_cast<std::size_t>(index);
    // granules * i / ranks, computed without overflow
    return std::min(count, (granules / ranks * i + granules % ranks * i / ranks) * kPartGranule);
  };
  return {boundary(rank), boundary(rank + 1)};
}

/// Returns the part of `count` elements that owner number `owner` gets, where parts are in proportion to `weights`, one of each owner and
/// not all 0. Parts begin at the same granules as equal ones; one of weight 0 is empty. A pure function of its arguments.
constexpr ElementRange part_of(std::size_t count, std::span<const std::uint32_t> weights, int owner) {
  const std::uint64_t granules = (std::uint64_t{count} + kPartGranule - 1) / kPartGranule;
  std::uint64_t total = 0, before = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i < static_cast<std::size_t>(owner)) before += weights[i];
    total += weights[i];
  }
  const auto boundary = [&](std::uint64_t weight) {
    // granules * weight / total, computed without overflow
    const std::uint64_t granule = granules / total * weight + granules % total * weight / total;
    return static_cast<std::size_t>(std::min<std::uint64_t>(count, granule * kPartGranule));
  };
  return {boundary(before), boundary(before + weights[static_cast<std::size_t>(owner)])};
}

/// Returns the rows of rank `rank`, given every rank's number of rows in rank order.
constexpr ElementRange part_of(std::span<const std::uint64_t> counts, int rank) {
  ElementRange range;
  for (int r = 0; r <= rank; ++r) range = {range.end, range.end + static_cast<std::size_t>(counts[static_cast<std::size_t>(r)])};
  return range;
}

/// Returns the part of `rows` rows that rank `rank` of `size` gets from a reduce-scatter: the first `rows % size` ranks get one row more.
constexpr ElementRange rows_of(std::size_t rows, int size, int rank) {
  const auto ranks = static_cast<std::size_t>(size);
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t base = rows / ranks;
  const std::size_t extra = rows % ranks;
  const std::size_t begin = base * r + std::min(r, extra);
  return {begin, begin + base + (r < extra ? 1 : 0)};
}

}  // namespace ringlet
