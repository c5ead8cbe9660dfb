#include "core/rendezvous/link_measurement.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace ringlet {

namespace {

constexpr Duration kMaxPingTime = Duration::milliseconds(150);
constexpr Duration kShortestRowLimit = Duration::milliseconds(30), kLongestRowLimit = Duration::milliseconds(250);
/// A row is given up once it has taken this many times as long as the fastest so far.
constexpr std::int64_t kRowPatience = 4;

}  // namespace

LinkMeasurement::LinkMeasurement(EventLoop& loop, const std::vector<LinkCandidate*>& candidates, std::function<void()> on_done)
    : loop_(loop), on_done_(std::move(on_done)) {
  for (LinkCandidate* candidate : candidates) subjects_.push_back({candidate});
}

LinkMeasurement::~LinkMeasurement() { cancel_timer(); }

LinkMeasurement::Subject* LinkMeasurement::find(const LinkCandidate& candidate) {
  const auto found = std::find_if(subjects_.begin(), subjects_.end(), [&](const Subject& one) { return one.candidate == &candidate; });
  return found == subjects_.end() ? nullptr : &*found;
}

void LinkMeasurement::set_timer(Duration delay, void (LinkMeasurement::*member)()) {
  timer_ = loop_.after(delay, [this, member] {
    timer_ = 0;
    (this->*member)();
  });
}

void LinkMeasurement::cancel_timer() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
}

bool LinkMeasurement::on_answer(LinkCandidate& candidate, const wire::LinkProbe& answer) {
  Subject* const subject = find(candidate);
  if (subject == nullptr || subject->answered == subject->sent || answer.number != subject->answered) return false;
  ++subject->answered;
  const bool row_has_begun = subject->pings > 0;
  if (!row_has_begun || subject->answered <= subject->pings)
    on_ping_answered(*subject, static_cast<std::uint64_t>(std::max<std::int64_t>((loop_.now() - subject->last_sent_at).nanoseconds, 1)));
  else if (subject == in_row_ && subject->answered == subject->sent)
    end_row();
  return true;
}

void LinkMeasurement::on_lost(LinkCandidate& candidate) {
  if (stage_ == Stage::pinging) return end_pinging_if_all_have_answered();
  if (in_row_ != nullptr && in_row_->candidate == &candidate) begin_next_row();
}

// --- round trips ---

void LinkMeasurement::start() {
  set_timer(kMaxPingTime, &LinkMeasurement::end_pinging);
  for (Subject& subject : subjects_) ping(subject);
}

void LinkMeasurement::ping(Subject& subject) {
  subject.last_sent_at = loop_.now();
  subject.candidate->send(wire::LinkProbe{subject.sent++, false, {}});
}

void LinkMeasurement::on_ping_answered(Subject& subject, std::uint64_t took_ns) {
  // Once the row has begun, the time of a ping that is still unanswered can no longer be told.
  if (subject.pings == 0) {
    std::uint64_t& round_trip = subject.candidate->path().round_trip_ns;
    round_trip = round_trip == 0 ? took_ns : std::min(round_trip, took_ns);
  }
  if (stage_ != Stage::pinging) return;
  subject.sent < kPings ? ping(subject) : end_pinging_if_all_have_answered();
}

void LinkMeasurement::end_pinging_if_all_have_answered() {
  const bool all = std::all_of(subjects_.begin(), subjects_.end(),
                               [](const Subject& one) { return !one.candidate->is_ready() || one.answered == kPings; });
  if (all) end_pinging();
}

void LinkMeasurement::end_pinging() {
  cancel_timer();
  stage_ = Stage::rows;
  for (Subject& subject : subjects_)
    if (subject.candidate->is_ready() && subject.answered == 0) subject.candidate->drop();
  begin_next_row();
}

// --- time per byte ---

void LinkMeasurement::begin_next_row() {
  cancel_timer();
  in_row_ = nullptr;
  Duration limit = kLongestRowLimit;
  std::size_t ready = 0;
  for (Subject& subject : subjects_) {
    if (!subject.candidate->is_ready()) continue;
    ++ready;
    const std::uint64_t byte_ps = subject.candidate->path().byte_ps;
    if (byte_ps == 0) {
      if (in_row_ == nullptr) in_row_ = &subject;
      continue;
    }
    const Duration row{static_cast<std::int64_t>(byte_ps * kRowLength * kPadding) / kPicosecondsPerNanosecond};
    limit = std::min(limit, std::max(kShortestRowLimit, row * kRowPatience));
  }
  if (ready < 2 || in_row_ == nullptr) {
    stage_ = Stage::done;
    in_row_ = nullptr;
    return std::exchange(on_done_, nullptr)();
  }
  in_row_->pings = in_row_->sent;
  in_row_->last_sent_at = loop_.now();
  const std::string padding(kPadding, '\0');
  for (std::size_t i = 0; i < kRowLength; ++i) in_row_->candidate->send(wire::LinkProbe{in_row_->sent++, false, padding});
  set_timer(limit, &LinkMeasurement::end_row);
}

/// The row has come back, or its time is over. In the latter case the probes that have come back count, or half a probe where none has.
void LinkMeasurement::end_row() {
  const auto took = static_cast<std::uint64_t>((loop_.now() - in_row_->last_sent_at).nanoseconds);
  wire::Path& path = in_row_->candidate->path();
  const std::uint64_t without_latency = took - std::min(took / 2, path.round_trip_ns);
  const std::uint64_t returned = in_row_->answered - std::min(in_row_->answered, in_row_->pings);
  const std::uint64_t bytes = std::max<std::uint64_t>(returned * kPadding, kPadding / 2);
  path.byte_ps = std::max<std::uint64_t>(without_latency * 1000 / bytes, 1);
  begin_next_row();
}

}  // namespace ringlet
