#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace ringlet {

/// Counts the bytes that have been sent to a peer, in one stream, for operations that it has not started yet. The peer has to keep them in
/// memory, so their number is limited. They are given back when the peer's own call of the operation arrives.
class EagerWindow {
 public:
  /// The bytes that each early operation counts beyond its payload, because the peer has to keep a record of it.
  static constexpr std::size_t kOperationBytes = 512;

  explicit EagerWindow(std::size_t limit_bytes) : limit_(limit_bytes) {}

  std::size_t room() const { return limit_ - taken_; }
  void take(std::size_t bytes) { taken_ += bytes; }
  void give_back(std::size_t bytes) { taken_ -= bytes; }

  /// Called where an operation has ended here before the peer's call of it came. release() gives its bytes back later.
  void defer_release(std::uint64_t sequence, std::size_t bytes) { deferred_.push_back({sequence, bytes}); }
  /// Called when the peer's call of an operation comes that has already ended here.
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
