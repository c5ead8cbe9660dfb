#include "core/engine/clock_comparison.hpp"

#include <limits>

#include "core/engine/send_control.hpp"

namespace ringlet {

namespace {

/// Numbers of surveys have not come so far, so a rank that knows no questions about clocks, and answers all the same, confuses none.
constexpr std::uint32_t kClockNumbers = 1u << 31;

}  // namespace

void ClockComparison::on_tick(Instant now) {
  if (usable(options_.session.trace) == nullptr || options_.rank == 0 || now < next_burst_ || !peers_.has_session(0)) return;
  // A question behind other bytes would measure those, so it waits for a pause, but not for ever.
  if (peers_.session(0).has_unsent() && now < next_burst_ + kPause) return;
  end_burst();
  left_ = kQuestions;
  next_burst_ = now + kPause;
  ask();
}

void ClockComparison::ask() {
  Session& session = peers_.session(0);
  number_ = 0;
  if (session.closed()) return;
  --left_;
  // An answer to a former epoch's question has another number.
  number_ = kClockNumbers | (options_.epoch & 0x7fff) << 16 | (++asked_count_ & 0xffff);
  asked_ = options_.session.trace->now();
  wire::StateQuestion question;
  question.number = number_;
  question.about_clock = true;
  send_control(session, question);
}

wire::RankState ClockComparison::answer(const wire::StateQuestion& question, Instant now) const {
  wire::RankState state;
  state.number = question.number;
  const Trace* trace = options_.session.trace;
  state.clock_ns = static_cast<std::uint64_t>((trace != nullptr ? trace->now() : now).nanoseconds);
  return state;
}

bool ClockComparison::take(int from, const wire::RankState& state) {
  if (state.number < kClockNumbers) return false;
  constexpr auto kLatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 2);
  if (from != 0 || number_ == 0 || state.number != number_ || state.clock_ns == 0 || state.clock_ns > kLatest) return true;
  const Duration round_trip = options_.session.trace->now() - asked_;
  ClockReading reading;
  reading.epoch = options_.epoch;
  reading.at = asked_ + round_trip / 2;
  reading.offset = Instant{static_cast<std::int64_t>(state.clock_ns)} - reading.at;
  reading.error = round_trip / 2 + Duration{1};
  if (!best_ || reading.error < best_->error) best_ = reading;
  if (left_ > 0) {
    ask();
  } else {
    number_ = 0;
    end_burst();
  }
  return true;
}

void ClockComparison::end_burst() {
  if (best_) options_.session.trace->record(*best_);
  best_.reset();
}

}  // namespace ringlet
