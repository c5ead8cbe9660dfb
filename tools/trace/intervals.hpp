#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ringlet::trace {

/// A set of moments, in nanoseconds: intervals that are added in any order and may overlap.
class Intervals {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    if (begin < end) all_.push_back({begin, end});
    is_normal_ = is_normal_ && all_.size() < 2;
  }

  std::int64_t length() {
    normalize();
    std::int64_t sum = 0;
    for (const Interval& one : all_) sum += one.end - one.begin;
    return sum;
  }
  bool empty() const { return all_.empty(); }
  std::int64_t first() {
    normalize();
    return all_.front().begin;
  }
  std::int64_t last() {
    normalize();
    return all_.back().end;
  }

  /// Whether all moments of this interval are in it.
  bool contains(std::int64_t begin, std::int64_t end) {
    normalize();
    const auto after =
        std::upper_bound(all_.begin(), all_.end(), begin, [](std::int64_t at, const Interval& one) { return at < one.begin; });
    return after != all_.begin() && end <= (after - 1)->end;
  }

  /// The moments that are in both.
  static Intervals both(Intervals& one, Intervals& other) {
    one.normalize();
    other.normalize();
    Intervals result;
    auto left = one.all_.begin(), right = other.all_.begin();
    while (left != one.all_.end() && right != other.all_.end()) {
      result.add(std::max(left->begin, right->begin), std::min(left->end, right->end));
      left->end < right->end ? ++left : ++right;
    }
    return result;
  }

 private:
  struct Interval {
    std::int64_t begin, end;
  };

  /// Sorts them, and makes those one that touch.
  void normalize() {
    if (is_normal_) return;
    std::sort(all_.begin(), all_.end(), [](const Interval& one, const Interval& other) { return one.begin < other.begin; });
    auto last = all_.begin();
    for (auto next = last + 1; next != all_.end(); ++next) {
      if (next->begin <= last->end)
        last->end = std::max(last->end, next->end);
      else
        *++last = *next;
    }
    all_.erase(last + 1, all_.end());
    is_normal_ = true;
  }

  std::vector<Interval> all_;
  bool is_normal_ = true;  // sorted, and apart from each other
};

}  // namespace ringlet::trace
