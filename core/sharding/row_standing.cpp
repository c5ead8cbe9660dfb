#include "core/sharding/row_standing.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace ringlet {

namespace {

using Number = std::int64_t;

constexpr Number kMostRanks = 1 << 20;

// One of the supported compilers lacks std::bit_cast.
Number bits_of(double weight) {
  Number bits;
  std::memcpy(&bits, &weight, sizeof bits);
  return bits;
}

double weight_of(Number bits) {
  double weight;
  std::memcpy(&weight, &bits, sizeof weight);
  return weight;
}

/// Reads numbers in turn. Once there are too few, or one is out of its bounds, it is no longer ok().
class Numbers {
 public:
  explicit Numbers(std::string_view text) : numbers_(text.size() / sizeof(Number)), ok_(text.size() % sizeof(Number) == 0) {
    if (!numbers_.empty()) std::memcpy(numbers_.data(), text.data(), numbers_.size() * sizeof(Number));
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return numbers_.size() - next_; }
  Number next(Number least, Number most) {
    ok_ = ok_ && next_ < numbers_.size() && least <= numbers_[next_] && numbers_[next_] <= most;
    return ok_ ? numbers_[next_++] : least;
  }
  int next_int(Number least, Number most) { return static_cast<int>(next(least, most)); }
  double next_weight() {
    const double weight = weight_of(next(INT64_MIN, INT64_MAX));
    ok_ = ok_ && std::isfinite(weight) && weight >= 0;
    return ok_ ? weight : 0;
  }

 private:
  std::vector<Number> numbers_;
  std::size_t next_ = 0;
  bool ok_;
};

}  // namespace

std::string RowStanding::text() const {
  const RowSpread& spread = holding.spread;
  std::vector<Number> numbers{
      holding.generation, static_cast<Number>(step), spread.ranks(), holding.rank, holding.is_fresh, is_whole, machine, spread.copies(),
      bits_of(weight)};
  for (const double each : spread.weights()) numbers.push_back(bits_of(each));
  numbers.insert(numbers.end(), spread.machines().begin(), spread.machines().end());
  // The source of a move that has not been made is the first holder.
  for (const RowMove& move : holding.missing)
    numbers.insert(numbers.end(), {static_cast<Number>(move.tensor), move.rows.begin, move.rows.end, move.source, move.target});
  const auto bytes = std::as_bytes(std::span(numbers));
  std::string text(bytes.size(), '\0');
  std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

std::optional<RowStanding> RowStanding::parse(std::string_view text, std::size_t tensors) {
  Numbers numbers(text);
  const Number generation = numbers.next(-1, INT64_MAX);
  const auto step = static_cast<std::uint64_t>(numbers.next(0, INT64_MAX));
  const Number ranks = numbers.next(1, std::min<Number>(kMostRanks, static_cast<Number>(numbers.left())));
  const int rank = numbers.next_int(0, ranks - 1);
  const bool is_fresh = numbers.next(0, 1) != 0, is_whole = numbers.next(0, 1) != 0;
  const int machine = numbers.next_int(0, kMostRanks), copies = numbers.next_int(1, 2);
  const double weight = numbers.next_weight();
  std::vector<double> weights;
  std::vector<int> machines;
  for (Number i = 0; i < ranks && numbers.ok(); ++i) weights.push_back(numbers.next_weight());
  for (Number i = 0; i < ranks && numbers.ok(); ++i) machines.push_back(numbers.next_int(0, kMostRanks));
  if (!numbers.ok() || std::all_of(weights.begin(), weights.end(), [](double each) { return each == 0; })) return std::nullopt;
  std::vector<RowMove> missing;
  while (numbers.ok() && numbers.left() > 0) {
    RowMove move;
    move.target_place = 1;
    move.tensor = static_cast<std::size_t>(numbers.next(0, static_cast<Number>(tensors) - 1));
    move.rows.begin = numbers.next(0, INT64_MAX);
    move.rows.end = numbers.next(move.rows.begin, INT64_MAX);
    move.source = numbers.next_int(0, ranks - 1);
    move.target = numbers.next_int(0, ranks - 1);
    missing.push_back(move);
  }
  if (!numbers.ok()) return std::nullopt;
  RowSpread spread(std::move(weights), std::move(machines), copies);
  return RowStanding{{std::move(spread), rank, std::move(missing), generation, is_fresh}, step, is_whole, weight, machine};
}

}  // namespace ringlet
