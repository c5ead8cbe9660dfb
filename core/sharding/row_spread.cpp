#include "core/sharding/row_spread.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"

namespace ringlet {

RowSpread::RowSpread(std::vector<double> weights, std::vector<int> machines, int copies)
    : weights_(std::move(weights)), machines_(std::move(machines)) {
  RINGLET_CHECK(machines_.size() == weights_.size());
  const auto machine_of = [&](int rank) { return machines_[static_cast<std::size_t>(rank)]; };
  std::vector<int> chain;
  std::map<int, std::size_t> on_machine;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (weights_[static_cast<std::size_t>(rank)] <= 0) continue;
    chain.push_back(rank);
    ++on_machine[machine_of(rank)];
  }
  copies_ = chain.size() < 2 ? 1 : copies;
  if (copies_ < 2) return;
  seconds_.assign(weights_.size(), -1);
  std::stable_sort(chain.begin(), chain.end(), [&](int a, int b) { return machine_of(a) < machine_of(b); });
  // A step of as many ranks as the largest machine has leads from each machine to another one.
  std::size_t step = 0;
  for (const auto& [machine, count] : on_machine) step = std::max(step, count);
  if (2 * step > chain.size()) step = 1;
  for (std::size_t i = 0; i < chain.size(); ++i) seconds_[static_cast<std::size_t>(chain[i])] = chain[(i + step) % chain.size()];
}

int RowSpread::holder(int shard, int place) const {
  if (place >= copies_) return -1;
  return place == 0 ? shard : seconds_[static_cast<std::size_t>(shard)];
}

int RowSpread::shard_at(int rank, int place) const {
  for (int shard = 0; shard < ranks(); ++shard)
    if (holder(shard, place) == rank) return shard;
  return -1;
}

RowSpread RowSpread::first_holders() const {
  RowSpread first = *this;
  first.copies_ = 1;
  first.seconds_.clear();
  return first;
}

std::vector<double> RowSpread::uneven_weights() const {
  const bool even = std::all_of(weights_.begin(), weights_.end(), [&](double weight) { return weight == weights_.front(); });
  return even ? std::vector<double>() : weights_;
}

namespace {

/// A place that has a shard's rows still.
struct Place {
  int rank, place;
};

/// Where a rank finds rows of a shard of the spread before.
std::optional<Place> find_source(const RowSpread& before, std::span<const int> now, int shard, bool at_second, int target,
                                 RowSource preferred) {
  std::optional<Place> source;
  for (int place = 0; place < (at_second ? before.copies() : 1); ++place) {
    const int holder = before.holder(shard, place);
    const int rank = holder < 0 ? -1 : now[static_cast<std::size_t>(holder)];
    if (rank == target && preferred == RowSource::own) return Place{rank, place};
    if (rank >= 0 && !source) source = Place{rank, place};
  }
  return source;
}

}  // namespace

std::vector<ShardRows> divide_rows(std::span<const RowMove> missing, std::size_t tensor, int second, RowRange rows) {
  std::vector<ShardRows> divided;
  while (rows.count() > 0) {
    ShardRows next{rows, true};
    for (const RowMove& move : missing) {
      if (move.tensor != tensor || move.target != second || move.rows.end <= rows.begin) continue;
      const bool is_in = move.rows.begin <= rows.begin;
      next.at_second = next.at_second && !is_in;
      next.rows.end = std::min(next.rows.end, is_in ? move.rows.end : move.rows.begin);
    }
    rows.begin = next.rows.end;
    divided.push_back(next);
  }
  return divided;
}

std::optional<std::vector<RowMove>> plan_row_moves(const Tree& full, const RowSpread& before, std::span<const RowMove> missing,
                                                   std::span<const int> now, const RowSpread& after, RowSource preferred,
                                                   std::string& lost) {
  const ShardLayout layout_before = before.layout(full), layout_after = after.layout(full);
  std::vector<RowMove> moves;
  for (std::size_t tensor = 0; tensor < full.size(); ++tensor)
    for (int target = 0; target < after.ranks(); ++target)
      for (int place = 0; place < after.copies(); ++place) {
        const int shard_after = after.shard_at(target, place);
        if (shard_after < 0) continue;
        const RowRange wanted = layout_after.rows(full[tensor].name, shard_after);
        for (int shard = 0; shard < before.ranks(); ++shard) {
          const RowRange has = layout_before.rows(full[tensor].name, shard);
          const RowRange both{std::max(wanted.begin, has.begin), std::min(wanted.end, has.end)};
          for (const auto& [rows, at_second] : divide_rows(missing, tensor, before.holder(shard, 1), both)) {
            const auto source = find_source(before, now, shard, at_second, target, preferred);
            if (!source) {
              lost = "the rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end) + " of '" + full[tensor].name + "'";
              return std::nullopt;
            }
            moves.push_back({tensor, rows, source->rank, source->place, target, place});
          }
        }
      }
  return moves;
}

std::vector<RowMove> take_row_moves(std::vector<RowMove>& waiting, std::span<const std::size_t> row_bytes, int ranks, std::size_t bytes) {
  std::vector<std::size_t> sent(static_cast<std::size_t>(ranks)), received(sent.size());
  std::vector<RowMove> taken, left;
  for (RowMove& move : waiting) {
    std::size_t& by_source = sent[static_cast<std::size_t>(move.source)];
    std::size_t& by_target = received[static_cast<std::size_t>(move.target)];
    const std::size_t row = row_bytes[move.tensor];
    const std::size_t most = bytes - std::min(bytes, std::max(by_source, by_target));
    auto rows = static_cast<std::size_t>(move.rows.count());
    if (row > 0) rows = std::min(rows, std::max<std::size_t>(most / row, taken.empty() ? 1 : 0));
    const std::int64_t end = move.rows.begin + static_cast<std::int64_t>(rows);
    if (rows > 0) {
      taken.push_back(move);
      taken.back().rows.end = end;
      by_source += rows * row;
      by_target += rows * row;
    }
    move.rows.begin = end;
    if (move.rows.count() > 0) left.push_back(move);
  }
  waiting = std::move(left);
  return taken;
}

}  // namespace ringlet
