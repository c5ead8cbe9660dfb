#pragma once

#include <algorithm>
#include <cstddef>

namespace ringlet {

/// What a rank has to keep for a peer whose operation it has not started itself: the payload of data and messages, and the records of calls
/// and offers.
struct EarlyCost {
  std::size_t payload_bytes = 0;
  std::size_t record_bytes = 0;

  /// The record of an early data frame.
  static constexpr std::size_t kFrameBytes = 128;
  /// The record of an early call or an offer, without the counts in it.
  static constexpr std::size_t kRecordBytes = 512;

  EarlyCost& operator+=(const EarlyCost& other) {
    payload_bytes += other.payload_bytes;
    record_bytes += other.record_bytes;
    return *this;
  }
  EarlyCost& operator-=(const EarlyCost& other) {
    payload_bytes -= other.payload_bytes;
    record_bytes -= other.record_bytes;
    return *this;
  }
  bool fits_in(const EarlyCost& room) const { return payload_bytes <= room.payload_bytes && record_bytes <= room.record_bytes; }
};

/// What two ranks may make each other keep, in all streams and groups together. Both count by the same limits. A sender gives its bytes
/// back later than its peer stops keeping them, so a rank that stays within its budget is never refused.
class EarlyBudget {
 public:
  /// The limits between two ranks of a world. All peers together can make a rank keep 32 MiB of payload and 32 MiB of records, or 256 KiB
  /// and 64 KiB for each peer where that is more.
  static EarlyCost limits_in_world(int size) {
    const std::size_t peers = static_cast<std::size_t>(std::max(size - 1, 1));
    return {std::clamp<std::size_t>(kOfAll / peers, 256 << 10, 8 << 20), std::clamp<std::size_t>(kOfAll / peers, 64 << 10, 8 << 20)};
  }

  explicit EarlyBudget(const EarlyCost& limits) : limits_(limits), room_(limits) {}

  /// What may still be sent to the peer.
  const EarlyCost& room() const { return room_; }
  void take(const EarlyCost& cost) { room_ -= cost; }
  void give_back(const EarlyCost& cost) { room_ += cost; }

  /// Counts what the peer has sent. Returns false where that is more than it may send.
  bool keep(const EarlyCost& cost) {
    kept_ += cost;
    if (kept_.fits_in(limits_)) return true;
    kept_ -= cost;
    return false;
  }
  void release(const EarlyCost& cost) { kept_ -= cost; }
  const EarlyCost& kept() const { return kept_; }

 private:
  static constexpr std::size_t kOfAll = 32 << 20;

  EarlyCost limits_;
  EarlyCost room_;
  EarlyCost kept_;
};

}  // namespace ringlet
