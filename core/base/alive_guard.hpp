#pragma once

#include <memory>
#include <utility>

namespace ringlet {

/// Ends the calls that an object has left behind in timers, deferred tasks and other objects. The object has a guard as a member, and gives
/// away callbacks that the guard has wrapped: once the object is destroyed, or has called end(), they do nothing.
class AliveGuard {
 public:
  /// Tells, also after a call that may have destroyed the guard's owner, whether the owner is still alive.
  class Watch {
   public:
    bool alive() const { return *alive_; }

   private:
    friend class AliveGuard;
    explicit Watch(std::shared_ptr<const bool> alive) : alive_(std::move(alive)) {}

    std::shared_ptr<const bool> alive_;
  };

  AliveGuard() = default;
  ~AliveGuard() { end(); }
  AliveGuard(const AliveGuard&) = delete;
  AliveGuard& operator=(const AliveGuard&) = delete;

  Watch watch() const { return Watch(alive_); }
  /// A callback that calls `callback`, which returns nothing, as long as the owner is alive.
  template <class Callback>
  auto wrap(Callback callback) const {
    return [watch = watch(), callback = std::move(callback)](auto&&... arguments) mutable {
      if (watch.alive()) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  bool alive() const { return *alive_; }
  /// From now on wrapped callbacks do nothing.
  void end() { *alive_ = false; }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ringlet
