#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace ringlet {

/// How much of operations that a peer has not started yet has been sent to it, in one stream. The peer must keep those bytes; the limit
/// bounds them. They are given back when the peer's own call of the operation arrives.
class EagerWindow {
 public:
  /// What each early operation costs beyond its payload: the peer has to remember it.
  static constexpr std::size_t kOperationBytes = 512;

  explicit EagerWindow(std::size_t limit_bytes) : limit_(limit_bytes) {}

  std::size_t room() const { return limit_ - taken_; }
  void take(std::size_t bytes) { taken_ += bytes; }
  void give_back(std::size_t bytes) { taken_ -= bytes; }

  /// An operation has ended here before the peer's call of it came: its bytes are given back by release().
  void defer_release(std::uint64_t sequence, std::size_t bytes) { deferred_.push_back({sequence, bytes}); }
  /// The peer's call of an operation that has ended here has come.
  void release(std::uint64_t sequence) {
    for (auto it = deferred_.begin(); it != deferred_.end(); ++it) {
      if (it->sequence != sequence) continue;
      give_back(it->bytes);
      deferred_.erase(it);
      return;
    }
  }

 private:
  struct Deferred {
    std::uint64_t sequence;
    std::size_t bytes;
  };
  std::size_t limit_;
  std::size_t taken_ = 0;
  std::deque<Deferred> deferred_;
};

}  // namespace ringlet
