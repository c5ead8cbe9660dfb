#pragma once

#include <array>
#include <cstddef>
#include <random>

#include "core/base/time.hpp"

namespace ringlet::discovery {

/// The times at which beacons are sent: immediately, after 0.1, 0.3 and 1 s, then every second. Each time is shifted at random by up to a
/// tenth, so that machines switched on at the same time do not keep sending at the same time.
class BeaconSchedule {
 public:
  void begin(Instant now) {
    beacon_ = 0;
    start_ = next_ = now;
  }
  Instant next() const noexcept { return next_; }
  /// Tells whether a query to the others is sent with the beacon that is due.
  bool asks() const noexcept { return beacon_ == 0 || beacon_ == 2; }
  /// Call this when the due beacon has been sent.
  void sent(Instant now, std::mt19937_64& random) {
    if (++beacon_ < kBurst.size()) {
      next_ = start_ + kBurst[beacon_];
    } else {
      beacon_ = kBurst.size();
      next_ = now + Duration::milliseconds(900 + static_cast<std::int64_t>(random() % 201));
    }
  }

 private:
  static constexpr std::array kBurst{Duration{}, Duration::milliseconds(100), Duration::milliseconds(300), Duration::seconds(1)};
  Instant start_;
  Instant next_;
  std::size_t beacon_ = 0;  // index in the burst
};

}  // namespace ringlet::discovery
