#pragma once

#include <memory>
#include <utility>

namespace ringlet {

/// Suppresses callbacks into an object that no longer exists. The object has a guard as a member and wraps with it each callback that it
/// gives to timers, deferred tasks and other objects. Once the object is destroyed or has called end(), wrapped callbacks do nothing.
class AliveGuard {
 public:
  /// Says whether the guard's owner is still alive, even after a call that may have destroyed the owner.
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
  /// Returns a callback that calls `callback`, which returns nothing, as long as the owner is alive.
  template <class Callback>
  auto wrap(Callback callback) const {
    return [watch = watch(), callback = std::move(callback)](auto&&... arguments) mutable {
      if (watch.alive()) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  bool alive() const { return *alive_; }
  /// Makes wrapped callbacks do nothing from now on.
  void end() { *alive_ = false; }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ringlet
