#include "core/plan/link_speeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "core/base/rank_text.hpp"

namespace ringlet {

namespace {

constexpr std::uint64_t kFastestBytePs = 2000;

std::uint32_t speed_of(double slowness) {
  if (slowness < kEquallyFast) return kFullSpeed;
  return static_cast<std::uint32_t>(std::max(std::round(kFullSpeed / slowness), 1.0));
}

/// What a byte costs that comes to a rank, if the others sent all of theirs at once: no more than it does. 0 where nothing is known.
std::uint64_t incoming_cost(std::span<const std::uint64_t> byte_ps, std::size_t count, std::size_t rank) {
  double bytes_per_ps = 0;
  for (std::size_t other = 0; other < count; ++other)
    if (const std::uint64_t cost = byte_ps[other * count + rank]; other != rank && cost != 0) bytes_per_ps += 1 / static_cast<double>(cost);
  return bytes_per_ps == 0 ? 0 : static_cast<std::uint64_t>(std::llround(1 / bytes_per_ps));
}

std::string mbits(std::uint64_t byte_ps) { return std::to_string(std::llround(8e6 / static_cast<double>(byte_ps))) + " Mbit/s"; }

}  // namespace

std::vector<double> slowness_of(std::span<const std::uint64_t> byte_ps) {
  const auto bounded = [](std::uint64_t cost) { return std::max(cost, kFastestBytePs); };
  std::vector<std::uint64_t> known;
  for (const std::uint64_t cost : byte_ps)
    if (cost != 0) known.push_back(bounded(cost));
  std::sort(known.begin(), known.end());
  const auto middle = static_cast<double>(known.empty() ? 1 : known[(known.size() - 1) / 2]);
  std::vector<double> slowness;
  for (const std::uint64_t cost : byte_ps) slowness.push_back(cost == 0 ? 1 : std::max(static_cast<double>(bounded(cost)) / middle, 1.0));
  return slowness;
}

std::vector<std::uint64_t> costs_of_ranks(std::span<const std::uint64_t> byte_ps, int natives) {
  const auto count = static_cast<std::size_t>(natives);
  std::vector<std::uint64_t> costs(count);
  for (std::size_t one = 0; one < count; ++one) {
    // What a rank knows of all its links together is of sending alone.
    const std::uint64_t all = byte_ps[one * count + one];
    if (all != 0) costs[one] = std::max(all, incoming_cost(byte_ps, count, one));
    for (std::size_t other = 0; other < count; ++other) {
      const std::uint64_t link = other == one ? 0 : std::max(byte_ps[one * count + other], byte_ps[other * count + one]);
      if (link != 0 && (costs[one] == 0 || link < costs[one])) costs[one] = link;
    }
  }
  return costs;
}

SpeedRecord::SpeedRecord(std::vector<std::uint32_t> in_use) : in_use_(std::move(in_use)), ranks_(in_use_.size()) {}

std::optional<SpeedRecord::Proposal> SpeedRecord::add(std::span<const std::uint64_t> byte_ps) {
  const std::vector<double> slowness = slowness_of(byte_ps);
  Proposal proposal{in_use_, {}};
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (byte_ps[rank] == 0 || !look(rank, slowness[rank], byte_ps[rank])) continue;
    const Window middle = ranks_[rank].middle();
    proposal.speeds[rank] = speed_of(middle.slowness);
    proposal.changes.push_back({static_cast<int>(rank), ranks_[rank].fitting, middle.byte_ps});
  }
  if (proposal.changes.empty()) return std::nullopt;
  return proposal;
}

SpeedRecord::Window SpeedRecord::Rank::middle() const {
  auto sorted = differing;
  std::sort(sorted.begin(), sorted.end(), [](const Window& one, const Window& other) { return one.slowness < other.slowness; });
  return sorted[kInARow / 2];
}

/// Returns whether the rank's speed has to change.
bool SpeedRecord::look(std::size_t rank, double slowness, std::uint64_t byte_ps) {
  Rank& of = ranks_[rank];
  const double in_use = static_cast<double>(kFullSpeed) / in_use_[rank];
  const double times = slowness > in_use ? slowness / in_use : in_use / slowness;
  if (times < kDiffers || speed_of(slowness) == in_use_[rank]) {
    of = Rank{0, byte_ps};
    return false;
  }
  const int direction = slowness > in_use ? 1 : -1;
  of.windows = of.windows * direction > 0 ? of.windows + direction : direction;
  const int count = std::abs(of.windows);
  of.differing[static_cast<std::size_t>(count) % kInARow] = {slowness, byte_ps};
  return count >= kInARow;
}

void SpeedRecord::take(const std::vector<std::uint32_t>& speeds) {
  in_use_ = speeds;
  for (Rank& rank : ranks_) rank = Rank{0, std::abs(rank.windows) >= kInARow ? rank.middle().byte_ps : rank.fitting};
}

std::string describe_changes(std::span<const SpeedChange> changes, const Topology& topology) {
  std::string text;
  for (const SpeedChange& change : changes.first(std::min(changes.size(), kMostNamed))) {
    const bool is_slow = topology.speed(change.rank) != kFullSpeed;
    const bool owns = topology.index_among_owners(change.rank) >= 0;
    text += (text.empty() ? "" : "; ") + rank_text(static_cast<std::uint64_t>(change.rank)) + "'s links carry " + mbits(change.now_ps) +
            (change.before_ps != 0 ? ", which were " + mbits(change.before_ps) : "") + ": it owns " +
            (!owns     ? "no part"
             : is_slow ? "a smaller part"
                       : "a full part") +
            " of an all-reduce now";
  }
  return text + more_text(changes.size());
}

}  // namespace ringlet
