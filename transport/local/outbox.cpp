#include "transport/local/outbox.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ringlet::local {

namespace {

// An answer waits for the parts that leave before it.
constexpr std::size_t kPassedBytesOfBatch = 256 << 10;
constexpr std::size_t kCopiedBytesOfBatch = 256 << 10;
constexpr std::size_t kKeptBytesOfRecord = 1 << 20;

}  // namespace

std::span<const ConstBytes> Outbox::unsent() {
  const ConstBytes records = ConstBytes(bytes_).subspan(begin_);
  if (records.empty()) return std::span(unsent_).subspan(first_passing_);
  // None of the parts has left while records before them have not.
  unsent_.front() = records;
  return unsent_;
}

std::size_t Outbox::left(std::size_t bytes) {
  const std::size_t of_records = std::min(bytes, unsent_record_bytes());
  begin_ += of_records;
  if (begin_ == bytes_.size()) {
    bytes_.clear();
    begin_ = 0;
  }
  passing_bytes_ -= bytes - of_records;
  for (std::size_t rest = bytes - of_records; rest > 0;) {
    ConstBytes& part = unsent_[first_passing_];
    const std::size_t taken = std::min(rest, part.size());
    part = part.subspan(taken);
    rest -= taken;
    if (part.empty()) ++first_passing_;
  }
  return passing_bytes_ == 0 ? end_passing() : 0;
}

std::size_t Outbox::end_passing() {
  passing_bytes_ = 0;
  unsent_.resize(1);
  first_passing_ = 1;
  bytes_.insert(bytes_.end(), later_.begin(), later_.end());
  later_.clear();
  return std::exchange(passed_bytes_, 0);
}

void Outbox::put(const Record& record) {
  std::array<std::byte, kMaxRecordBytes> encoded;
  const std::size_t bytes = encode_record(record, encoded.data());
  std::vector<std::byte>& end = passing_bytes_ > 0 ? later_ : bytes_;
  end.insert(end.end(), encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(bytes));
}

void Outbox::append(ConstBytes part) {
  if (!open_data_) {
    open_data_ = bytes_.size();
    put({.kind = RecordKind::data});
  }
  bytes_.insert(bytes_.end(), part.begin(), part.end());
  detail::store_le(bytes_.data() + *open_data_, static_cast<std::uint32_t>(bytes_.size() - *open_data_ - kShortRecordBytes));
}

bool Outbox::is_long(ConstBytes part) const { return part.size() >= pull_bytes_ && part.size() <= kMaxRecordLength; }

bool Outbox::lends_any(std::span<const ConstBytes> parts, const LentBatch& limits) {
  std::size_t bytes = 0, copied_before = 0;
  for (const ConstBytes part : parts) {
    if (is_long(part))
      bytes += part.size();
    else if (bytes == 0)
      copied_before += part.size();
  }
  if (bytes < limits.from) passes_long_ = false;
  if (bytes >= limits.below) passes_long_ = true;
  return lends_ && bytes > 0 && bytes >= limits.from && !passes_long_ && copied_before <= kCopiedBytesOfBatch;
}

std::size_t Outbox::pass(std::span<const ConstBytes> parts) {
  std::size_t bytes = 0;
  for (const ConstBytes part : parts) {
    const ConstBytes fits = part.first(std::min(part.size(), kPassedBytesOfBatch - bytes));
    if (!fits.empty()) unsent_.push_back(fits);
    bytes += fits.size();
  }
  if (bytes == 0) return 0;
  put({.kind = RecordKind::data, .length = static_cast<std::uint32_t>(bytes)});
  position_ += bytes;
  return passed_bytes_ = passing_bytes_ = bytes;
}

std::size_t Outbox::announce(std::span<const ConstBytes> parts, std::uint64_t epoch, const LentBatch& limits) {
  if (!lends_any(parts, limits)) return pass(parts);
  const std::uint64_t from = position_;
  std::size_t room = kCopiedBytesOfBatch;
  open_data_ = last_pull_ = std::nullopt;
  lent_.clear();
  for (const ConstBytes part : parts) {
    if (part.empty()) continue;
    const ConstBytes announced = is_long(part) ? part : part.first(std::min(part.size(), room));
    if (announced.empty()) break;
    if (is_long(part)) {
      open_data_ = std::nullopt;
      last_pull_ = bytes_.size();
      put({RecordKind::pull, static_cast<std::uint32_t>(part.size()), reinterpret_cast<std::uintptr_t>(part.data()), epoch});
      answer_at_ = position_ + part.size();
    } else {
      append(announced);
      room -= announced.size();
    }
    lent_.push_back(announced);
    position_ += announced.size();
    if (announced.size() < part.size()) break;
  }
  bytes_[*last_pull_ + 4] = static_cast<std::byte>(RecordKind::last_pull);
  return batch_bytes_ = static_cast<std::size_t>(position_ - from);
}

std::size_t Outbox::keep() {
  if (passing_bytes_ > 0) {
    for (std::size_t i = first_passing_; i < unsent_.size(); ++i) bytes_.insert(bytes_.end(), unsent_[i].begin(), unsent_[i].end());
    return end_passing();
  }
  if (!awaits_answer() || has_kept_) return 0;
  has_kept_ = true;
  for (const ConstBytes part : lent_) kept_.insert(kept_.end(), part.begin(), part.end());
  lent_.clear();
  return batch_bytes_;
}

std::size_t Outbox::end_batch() {
  const std::size_t bytes = std::exchange(batch_bytes_, 0);
  lent_.clear();
  kept_ = {};
  return std::exchange(has_kept_, false) ? 0 : bytes;
}

std::optional<std::size_t> Outbox::on_taken(std::uint64_t position) {
  if (!awaits_answer() || position != answer_at_) return std::nullopt;
  return end_batch();
}

std::optional<std::size_t> Outbox::on_unreadable(std::uint64_t position) {
  const std::uint64_t from = position_ - batch_bytes_;
  if (!awaits_answer() || position < from || position > answer_at_) return std::nullopt;
  lends_ = false;
  put({.kind = RecordKind::restart});
  const auto taken = static_cast<std::size_t>(position - from);
  if (!has_kept_) position_ = position;
  for (std::size_t begin = taken; begin < kept_.size(); begin += kKeptBytesOfRecord) {
    open_data_ = std::nullopt;
    append(ConstBytes(kept_).subspan(begin, std::min(kKeptBytesOfRecord, kept_.size() - begin)));
  }
  return end_batch() == 0 ? 0 : taken;
}

}  // namespace ringlet::local
