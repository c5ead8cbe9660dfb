#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/rendezvous/dialler.hpp"
#include "tools/job/message_link.hpp"

namespace ringlet::agent {

/// The findings of a PathProbe.
struct PathQuality {
  Status status{};                        // the failure of the dialler or of the MessageLink
  bool stalled = false;                   // small messages came through, and then a large one did not
  std::optional<Duration> round_trip{};   // the shortest of a few
  double bytes_per_second = 0;            // of large messages there; 0: not measured
  std::optional<Duration> clock_ahead{};  // how far the agent's clock is ahead of this machine's, to about a round trip
};

/// Measures one way to an agent: some small messages, then about a megabyte there and a part of it back. Takes as long as the way needs;
/// gives up after 4 s without an answer. Belongs to the loop's thread; may be destroyed at any time, then `on_done` does not run.
class PathProbe {
 public:
  /// Runs once, from the loop.
  using OnDone = std::function<void(const PathQuality&)>;

  /// All but `address` outlive it.
  PathProbe(EventLoop& loop, Network& network, Authenticator& authenticator, const Address& address, OnDone on_done);
  ~PathProbe();
  PathProbe(const PathProbe&) = delete;
  PathProbe& operator=(const PathProbe&) = delete;

 private:
  void on_dialled(Result<std::unique_ptr<Link>> link);
  void on_message(const job::Message& message);
  void ask();
  void wait_for_echo();
  void end();

  EventLoop& loop_;
  Dialler dialler_;
  OnDone on_done_;
  std::unique_ptr<job::MessageLink> link_;
  PathQuality quality_;
  std::uint32_t number_ = 0;  // of the last question
  Instant asked_at_{};
  Instant large_since_{};
  TimerId timer_ = 0;
  bool over_ = false;
};

}  // namespace ringlet::agent
