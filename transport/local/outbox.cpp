#include "transport/local/outbox.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ringlet::local {

namespace {

constexpr std::size_t kCopiedBytesOfBatch = 256 << 10;
constexpr std::size_t kKeptBytesOfRecord = 1 << 20;

}  // namespace

std::size_t Outbox::left(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ < bytes_.size()) return 0;
  bytes_.clear();
  begin_ = 0;
  return std::exchange(copied_bytes_, 0);
}

void Outbox::put(const Record& record) {
  std::array<std::byte, kMaxRecordBytes> encoded;
  const std::size_t bytes = encode_record(record, encoded.data());
  bytes_.insert(bytes_.end(), encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(bytes));
}

void Outbox::append(ConstBytes part) {
  if (!open_data_) {
    open_data_ = bytes_.size();
    put({.kind = RecordKind::data});
  }
  bytes_.insert(bytes_.end(), part.begin(), part.end());
  detail::store_le(bytes_.data() + *open_data_, static_cast<std::uint32_t>(bytes_.size() - *open_data_ - kShortRecordBytes));
}

std::size_t Outbox::announce(std::span<const ConstBytes> parts, std::uint64_t epoch) {
  const std::uint64_t from = position_;
  std::size_t room = kCopiedBytesOfBatch;
  open_data_ = last_pull_ = std::nullopt;
  lent_.clear();
  for (ConstBytes part : parts) {
    const bool pulled = lends_ && part.size() >= pull_bytes_ && part.size() <= kMaxRecordLength;
    if (!pulled) part = part.first(std::min(part.size(), room));
    if (part.empty() && room == 0) break;
    if (part.empty()) continue;
    if (pulled) {
      open_data_ = std::nullopt;
      last_pull_ = bytes_.size();
      put({RecordKind::pull, static_cast<std::uint32_t>(part.size()), reinterpret_cast<std::uintptr_t>(part.data()), epoch});
      answer_at_ = position_ + part.size();
    } else {
      append(part);
      room -= part.size();
    }
    lent_.push_back(part);
    position_ += part.size();
  }
  const auto announced = static_cast<std::size_t>(position_ - from);
  if (!last_pull_) return copied_bytes_ = announced;
  bytes_[*last_pull_ + 4] = static_cast<std::byte>(RecordKind::last_pull);
  batch_bytes_ = announced;
  return announced;
}

std::size_t Outbox::keep() {
  if (copied_bytes_ > 0) return std::exchange(copied_bytes_, 0);
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
