#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/engine/early_budget.hpp"

namespace ringlet {

/// Counts what has been sent to a peer, in one stream, for operations that it has not started yet. The peer has to keep it in memory, so
/// each stream may only send so much, and all streams together no more than the EarlyBudget. It is given back when the peer's own call of
/// the operation arrives.
class EagerWindow {
 public:
  explicit EagerWindow(std::size_t limit_bytes) : limit_(limit_bytes) {}

  std::size_t room() const { return limit_ - std::min(limit_, taken_.payload_bytes + taken_.record_bytes); }
  void take(const EarlyCost& cost) { taken_ += cost; }
  void give_back(const EarlyCost& cost) { taken_ -= cost; }
  /// What has been taken and not given back.
  const EarlyCost& taken() const { return taken_; }

  /// Called where an operation has ended here before the peer's call of it came. release() gives its cost back later.
  void defer_release(std::uint64_t sequence, const EarlyCost& cost) { deferred_.push_back({sequence, cost}); }
  /// Called when the peer's call of an operation comes that has already ended here. Returns what has been given back.
  EarlyCost release(std::uint64_t sequence) {
    const auto found = std::find_if(deferred_.begin(), deferred_.end(), [&](const Deferred& one) { return one.sequence == sequence; });
    if (found == deferred_.end()) return {};
    const EarlyCost cost = found->cost;
    give_back(cost);
    deferred_.erase(found);
    return cost;
  }

 private:
  struct Deferred {
    std::uint64_t sequence;
    EarlyCost cost;
  };
  std::size_t limit_;
  EarlyCost taken_;
  std::deque<Deferred> deferred_;
};

}  // namespace ringlet
