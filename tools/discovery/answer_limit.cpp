#include "tools/discovery/answer_limit.hpp"

#include <algorithm>

namespace ringlet::discovery {

void AnswerLimit::Bucket::fill(double per_second, double most, Instant now) {
  tokens = std::min(most, tokens + per_second * static_cast<double>((now - filled).nanoseconds) * 1e-9);
  filled = now;
}

AnswerLimit::Bucket& AnswerLimit::bucket_of(const IpAddress& address, Instant now) {
  const auto found = std::find_if(askers_.begin(), askers_.end(), [&](const Asker& asker) { return asker.address == address; });
  if (found != askers_.end()) return found->bucket;
  if (askers_.size() == kAskers)
    askers_.erase(
        std::min_element(askers_.begin(), askers_.end(), [](const auto& a, const auto& b) { return a.bucket.filled < b.bucket.filled; }));
  askers_.push_back({address, {kMaxBurstToOne, now}});
  return askers_.back().bucket;
}

bool AnswerLimit::allow(std::uint64_t instance, std::uint64_t sequence, const IpAddress& from, Instant now) {
  const Query query{instance, sequence};
  if (std::find(answered_.begin(), answered_.end(), query) != answered_.end()) return false;
  all_.fill(kToAllPerSecond, kMaxBurstToAll, now);
  if (all_.tokens < 1) return false;
  Bucket& own = bucket_of(from, now);
  own.fill(kToOnePerSecond, kMaxBurstToOne, now);
  if (own.tokens < 1) return false;
  all_.tokens -= 1;
  own.tokens -= 1;
  answered_[next_answered_++ % kAskers] = query;
  return true;
}

}  // namespace ringlet::discovery
