#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/ip_address.hpp"
#include "core/base/time.hpp"

namespace ringlet::discovery {

/// Limits how many answers are sent: to each address four at once and two per second, and to all together 64 at once and 64 per second. A
/// query that arrives several times, on several interfaces, is answered once. Since an answer is also no longer than its query, a query
/// with a forged address does not amplify traffic.
class AnswerLimit {
 public:
  /// Tells whether this query may be answered. If so, the answer counts towards the limits.
  bool allow(std::uint64_t instance, std::uint64_t sequence, const IpAddress& from, Instant now);

 private:
  struct Bucket {
    double tokens;
    Instant filled;
    void fill(double per_second, double most, Instant now);
  };
  struct Asker {
    IpAddress address;
    Bucket bucket;
  };
  struct Query {
    std::uint64_t instance = 0;
    std::uint64_t sequence = 0;
    friend bool operator==(const Query&, const Query&) = default;
  };
  static constexpr double kMaxBurstToAll = 64, kMaxBurstToOne = 4, kToAllPerSecond = 64, kToOnePerSecond = 2;
  static constexpr std::size_t kAskers = 64;

  Bucket& bucket_of(const IpAddress& address, Instant now);

  Bucket all_{kMaxBurstToAll, {}};
  std::vector<Asker> askers_;  // at most kAskers
  std::array<Query, kAskers> answered_{};
  std::size_t next_answered_ = 0;
};

}  // namespace ringlet::discovery
