#pragma once

#include <cstdint>
#include <optional>

#include "core/engine/options.hpp"
#include "core/engine/peers.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Compares this rank's clock with rank 0's, where there is a trace. In bursts of kQuestions it asks rank 0 for its time; of each burst the
/// answer that came soonest is recorded, as NTP does (RFC 5905, 10): half its round trip bounds the error, whichever way took longer.
/// Belongs to the loop's thread.
class ClockComparison {
 public:
  static constexpr int kQuestions = 8;
  static constexpr Duration kPause = Duration::seconds(1);  // between bursts; clocks drift apart by some 50 us in it

  /// Both outlive this object.
  ClockComparison(const WorldOptions& options, const Peers& peers) : options_(options), peers_(peers) {}

  /// To be called regularly.
  void on_tick(Instant now);
  /// The answer to a question about this rank's clock, which is the trace's or, without one, the loop's.
  wire::RankState answer(const wire::StateQuestion& question, Instant now) const;
  /// Takes the answer of rank 0. Returns false where the message is not about clocks. One that was not asked for is ignored.
  bool take(int from, const wire::RankState& state);

 private:
  void ask();
  void end_burst();

  const WorldOptions& options_;
  const Peers& peers_;
  std::uint32_t number_ = 0;  // of the question that is open; 0: none
  std::uint32_t asked_count_ = 0;
  Instant asked_{};
  int left_ = 0;  // in this burst
  Instant next_burst_{};
  std::optional<ClockReading> best_;
};

}  // namespace ringlet
