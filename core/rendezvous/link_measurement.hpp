#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/rendezvous/link_candidate.hpp"

namespace ringlet {

/// Measures the candidates of a link race by probes that the peer sends back: first a few small ones over all candidates at once, then a
/// row of long ones over one candidate after the other. It stores round trip and time per byte in the candidates' paths. A candidate that
/// answers nothing is closed. Belongs to the loop's thread.
class LinkMeasurement {
 public:
  /// The number and size of one candidate's probes. The acceptor does not have to take more of them, nor longer messages.
  static constexpr std::size_t kPings = 4, kRowLength = 16, kProbes = kPings + kRowLength, kPadding = 16 << 10;
  static constexpr std::size_t kMaxMessageBytes = kPadding + 1024;

  /// All arguments outlive it; the candidates are ready. `on_done` runs once, from the loop or inside a call, when all that are still ready
  /// are measured, or only one is left.
  LinkMeasurement(EventLoop& loop, const std::vector<LinkCandidate*>& candidates, std::function<void()> on_done);
  ~LinkMeasurement();
  LinkMeasurement(const LinkMeasurement&) = delete;
  LinkMeasurement& operator=(const LinkMeasurement&) = delete;

  void start();
  /// Answers may also come after on_done has run. Returns false where no such probe was sent.
  bool on_answer(LinkCandidate& candidate, const wire::LinkProbe& answer);
  /// One of the candidates was lost.
  void on_lost(LinkCandidate& candidate);

 private:
  enum class Stage : std::uint8_t { pinging, rows, done };
  struct Subject {
    LinkCandidate* candidate = nullptr;
    std::uint32_t sent = 0, answered = 0;
    std::uint32_t pings = 0;  // how many of those sent were pings; set when the row begins
    Instant last_sent_at{};
  };

  Subject* find(const LinkCandidate& candidate);
  void ping(Subject& subject);
  void on_ping_answered(Subject& subject, std::uint64_t took_ns);
  void end_pinging_if_all_have_answered();
  void end_pinging();
  void begin_next_row();
  void end_row();
  void set_timer(Duration delay, void (LinkMeasurement::*member)());
  void cancel_timer();

  EventLoop& loop_;
  std::vector<Subject> subjects_;
  std::function<void()> on_done_;
  Stage stage_ = Stage::pinging;
  Subject* in_row_ = nullptr;  // the subject whose row is under way
  TimerId timer_ = 0;
};

}  // namespace ringlet
