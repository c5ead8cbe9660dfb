#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "tests/core/sim_group.hpp"

namespace ringlet::test {

/// Starts sums of rank + 1 on one rank again and again, and checks each result. Its memory is freed as soon as an operation fails.
class Adder {
 public:
  Adder(SimGroup& group, int rank, std::size_t count, int rounds) : group_(group), rank_(rank), values_(count), rounds_(rounds) { next(); }
  Adder(const Adder&) = delete;

  int rank() const { return rank_; }
  bool done() const { return rounds_ == 0 || failed(); }
  bool failed() const { return !last_.ok(); }
  const Status& last() const { return last_; }
  int completions() const { return completions_; }
  int started() const { return started_; }

 private:
  void next() {
    for (auto& value : values_) value = rank_ + 1;
    auto task = make_all_reduce(ReduceOp::sum, values_, values_, 1, group_.options(rank_));
    task.value().timeout = Duration::seconds(30);
    task.value().completion = [this](const Status& status) { on_done(status); };
    ++started_;
    group_.world(rank_).group().start(0, std::move(task).value());
  }
  void on_done(const Status& status) {
    ++completions_;
    last_ = status;
    if (!status.ok()) {
      std::fill(values_.begin(), values_.end(), -1);
      values_ = {};
      return;
    }
    const std::int32_t sum = group_.size() * (group_.size() + 1) / 2;
    const auto wrong = std::find_if(values_.begin(), values_.end(), [sum](std::int32_t value) { return value != sum; });
    if (wrong != values_.end()) FAIL("rank " << rank_ << " has " << *wrong << " at " << wrong - values_.begin() << ", not " << sum);
    if (--rounds_ > 0) next();
  }

  SimGroup& group_;
  int rank_;
  std::vector<std::int32_t> values_;
  int rounds_;
  int started_ = 0;
  int completions_ = 0;
  Status last_;
};

enum class Fault : std::uint8_t { closes, resets, falls_silent, freezes, kCount };

inline void inject(SimGroup& group, Fault fault, int victim, Duration delay) {
  SimWorld& sim = group.sim();
  switch (fault) {
    case Fault::closes:
      return sim.stop(group.node(victim), StopKind::closes_links).in(delay);
    case Fault::resets:
      return sim.stop(group.node(victim), StopKind::resets_links).in(delay);
    case Fault::falls_silent:
      return sim.stop(group.node(victim), StopKind::falls_silent).in(delay);
    case Fault::freezes:
      return sim.freeze(group.node(victim)).in(delay);
    case Fault::kCount:
      return;
  }
}

}  // namespace ringlet::test
