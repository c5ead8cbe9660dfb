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

  std::size_t room() const { return limit_ - outstanding_; }
  void take(std::size_t bytes) { outstanding_ += bytes; }
  void give_back(std::size_t bytes) { outstanding_ -= bytes; }

  /// An operation has ended here before the peer's call of it came.
  void leave_behind(std::uint64_t sequence, std::size_t bytes) { behind_.push_back({sequence, bytes}); }
  /// The peer's call of such an operation has come. False if there was none.
  bool settle(std::uint64_t sequence) {
    for (auto it = behind_.begin(); it != behind_.end(); ++it) {
      if (it->sequence != sequence) continue;
      give_back(it->bytes);
      behind_.erase(it);
      return true;
    }
    return false;
  }

 private:
  struct Behind {
    std::uint64_t sequence;
    std::size_t bytes;
  };
  std::size_t limit_;
  std::size_t outstanding_ = 0;
  std::deque<Behind> behind_;
};

}  // namespace ringlet
