#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "transport/local/record.hpp"

namespace ringlet::local {

/// How many bytes the long parts of a batch have together, if they are lent.
struct LentBatch {
  std::size_t from = 0, below = SIZE_MAX;
};

/// The sending half of a PeerMemoryLink: the records that wait for the inner link, and the current batch, which is the user's parts that
/// these records announce. Parts of a batch that lends none leave behind its record, uncopied. At most one batch is under way: one that
/// lends parts ends when the peer has answered.
class Outbox {
 public:
  /// Parts of `pull_bytes` and more may be lent.
  explicit Outbox(std::size_t pull_bytes) : pull_bytes_(pull_bytes) {}

  /// The parts that the inner link is to take next. Valid until the next call that changes this object.
  std::span<const ConstBytes> unsent();
  std::size_t unsent_record_bytes() const { return bytes_.size() - begin_; }
  /// How many bytes the inner link has yet to take until it has all that is in here now.
  std::size_t unsent_bytes() const { return unsent_record_bytes() + passing_bytes_ + later_.size(); }
  /// Records that the inner link has taken `bytes` bytes. Returns how many of the user's bytes have left because of this: all bytes of a
  /// batch that lends none, else 0.
  std::size_t left(std::size_t bytes);
  void put(const Record& record);
  /// Puts records for as many of the parts as one batch may hold, and returns how many bytes they have. Must not be called while a batch is
  /// under way. If the parts that might be lent have too many bytes for it, nothing is lent until a batch comes that has too few. Nor is
  /// anything if what must be copied before the first of them is more than one batch copies.
  std::size_t announce(std::span<const ConstBytes> parts, std::uint64_t epoch, const LentBatch& limits = {});

  /// Whether there is a batch whose bytes neither left() nor an answer has reported yet.
  bool batch_under_way() const { return batch_bytes_ + passing_bytes_ > 0; }
  /// Whether the peer still has to answer that it has read the parts that the last batch lends.
  bool awaits_answer() const { return batch_bytes_ > 0; }
  /// Copies the batch, unless that was done before. From now on none of its parts is lent, and neither left() nor an answer reports its
  /// bytes. Returns how many bytes it has.
  std::size_t keep();
  /// Handles the peer's answer that it has taken everything up to `position`. Returns how many of the user's bytes have left because of
  /// this, or nothing if no such answer was due.
  std::optional<std::size_t> on_taken(std::uint64_t position);
  /// Handles the peer's answer that it has taken everything up to `position` and cannot read any further. The rest is sent from the copy,
  /// and no part is lent any more. Returns the same as on_taken().
  std::optional<std::size_t> on_unreadable(std::uint64_t position);

 private:
  void append(ConstBytes part);
  std::size_t pass(std::span<const ConstBytes> parts);
  std::size_t end_passing();
  std::size_t end_batch();

  bool lends_any(std::span<const ConstBytes> parts, const LentBatch& limits);
  bool is_long(ConstBytes part) const;

  const std::size_t pull_bytes_;
  bool lends_ = true;
  bool passes_long_ = false;  // what follows a batch that was too long to be lent is a part of the same
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;                 // the bytes before it in bytes_ have left
  std::optional<std::size_t> open_data_;  // index in bytes_ of a data record that can still grow
  std::optional<std::size_t> last_pull_;  // index in bytes_ of the last pull record of the batch
  std::uint64_t position_ = 0;            // of this direction's stream: all bytes before it have been announced
  std::uint64_t answer_at_ = 0;           // the position that `taken` will name
  std::vector<ConstBytes> unsent_{1};     // the rest of bytes_, then the user's parts that follow it
  std::size_t first_passing_ = 1;         // index in unsent_ of the first one that has not left completely
  std::size_t passing_bytes_ = 0;         // how many bytes of these parts have not left
  std::size_t passed_bytes_ = 0;          // size of that batch
  std::vector<std::byte> later_;          // records that follow the parts
  std::size_t batch_bytes_ = 0;           // how many bytes before position_ await an answer
  std::vector<ConstBytes> lent_;          // the user's parts of the batch
  std::vector<std::byte> kept_;           // a copy of them
  bool has_kept_ = false;
};

}  // namespace ringlet::local
