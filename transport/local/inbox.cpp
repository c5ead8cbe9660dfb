#include "transport/local/inbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringlet::local {

namespace {

constexpr std::size_t kMaxUserParts = 2;

}  // namespace

Inbox::Inbox(std::size_t buffer_bytes) : buffer_(std::max(buffer_bytes, kMaxRecordBytes)) {}

std::size_t Inbox::set_room(std::span<const Bytes> parts, std::size_t max_bytes) {
  clear_room();
  for (const Bytes part : parts.first(std::min(parts.size(), kMaxUserParts))) {
    room_[room_parts_] = part.first(std::min(part.size(), max_bytes - room_bytes_));
    room_bytes_ += room_[room_parts_++].size();
  }
  return room_bytes_;
}

void Inbox::clear_room() { room_parts_ = room_bytes_ = offered_bytes_ = 0; }

std::span<const Bytes> Inbox::offer(bool with_buffer) {
  offered_bytes_ = room_bytes_;
  if (!with_buffer) return {room_.data(), room_parts_};
  if (begin_ > 0 && !empty()) std::memmove(buffer_.data(), buffer_.data() + begin_, unread_bytes());
  end_ -= std::exchange(begin_, 0);
  room_[room_parts_] = Bytes(buffer_).subspan(end_);
  return {room_.data(), room_parts_ + 1};
}

std::size_t Inbox::added(std::size_t bytes) {
  const std::size_t placed = std::min(bytes, std::exchange(offered_bytes_, 0));
  end_ += bytes - placed;
  return placed;
}

void Inbox::copy_to_room() {
  for (const Bytes part : std::span(room_).first(room_parts_)) {
    if (!part.empty()) std::memcpy(part.data(), buffer_.data() + begin_, part.size());
    begin_ += part.size();
  }
}

bool Inbox::take_record(std::optional<Record>& record) {
  record.reset();
  if (unread_bytes() < kShortRecordBytes) return true;
  const std::byte* next = buffer_.data() + begin_;
  const std::size_t bytes = record_bytes(next);
  if (bytes == 0) return false;
  if (unread_bytes() < bytes) return true;
  begin_ += bytes;
  record = decode_record(next);
  return true;
}

bool Inbox::read_peer(PeerMemory& memory, const PeerMark& peer, const Record& record) const {
  std::array<std::byte, kMarkHeadBytes> seen;
  const auto room = std::span<const Bytes>(room_).first(room_parts_);
  if (!memory.read(peer.process, record.first, room, peer.address, seen)) return false;
  std::uint64_t epoch = 0;
  std::memcpy(&epoch, seen.data() + sizeof(MarkWord), sizeof epoch);
  return std::equal(peer.word.begin(), peer.word.end(), seen.begin()) && epoch == record.second;
}

}  // namespace ringlet::local
