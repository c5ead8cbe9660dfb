#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/wire/frame.hpp"

namespace ringlet::local {

/// The records that a PeerMemoryLink sends over its inner link. Append only.
enum class RecordKind : std::uint8_t {
  data = 1,        // `length` bytes follow
  pull = 2,        // the direction's next `length` bytes are at this address of the sender's memory, in this epoch
  last_pull = 3,   // the same, and the last of a batch: the receiver answers by `taken` or `unreadable`
  taken = 4,       // the receiver has all bytes up to this position
  unreadable = 5,  // the receiver has all bytes up to this position, and takes no more before `restart`
  restart = 6,     // the sender goes on at the position of `unreadable`
  end = 7,         // of this direction
};

/// Little-endian: length u32, kind u8, three zero bytes; `pull` and `last_pull` go on with address u64 and epoch u64, `taken` and
/// `unreadable` with position u64.
struct Record {
  RecordKind kind = RecordKind::end;
  std::uint32_t length = 0;
  std::uint64_t first = 0;   // address or position
  std::uint64_t second = 0;  // epoch
};

inline constexpr std::size_t kShortRecordBytes = 8;
inline constexpr std::size_t kMaxRecordBytes = 24;
inline constexpr std::uint32_t kMaxRecordLength = 64u << 20;

/// How long the record is that begins with these kShortRecordBytes; 0 for one that breaks the protocol.
inline std::size_t record_bytes(const std::byte* in) {
  switch (static_cast<RecordKind>(in[4])) {
    case RecordKind::pull:
    case RecordKind::last_pull:
      return kMaxRecordBytes;
    case RecordKind::taken:
    case RecordKind::unreadable:
      return kShortRecordBytes + 8;
    case RecordKind::data:
    case RecordKind::restart:
    case RecordKind::end:
      return kShortRecordBytes;
  }
  return 0;
}

/// `in` has as many bytes as record_bytes(in) says.
inline Record decode_record(const std::byte* in) {
  const std::size_t bytes = record_bytes(in);
  Record record;
  record.length = detail::load_le<std::uint32_t>(in);
  record.kind = static_cast<RecordKind>(in[4]);
  if (bytes > kShortRecordBytes) record.first = detail::load_le<std::uint64_t>(in + 8);
  if (bytes == kMaxRecordBytes) record.second = detail::load_le<std::uint64_t>(in + 16);
  return record;
}

/// Returns how many bytes the record takes of the kLongestRecordBytes at `out`.
inline std::size_t encode_record(const Record& record, std::byte* out) {
  detail::store_le(out, record.length);
  detail::store_le(out + 4, static_cast<std::uint32_t>(record.kind));
  const std::size_t bytes = record_bytes(out);
  if (bytes > kShortRecordBytes) detail::store_le(out + 8, record.first);
  if (bytes == kMaxRecordBytes) detail::store_le(out + 16, record.second);
  return bytes;
}

}  // namespace ringlet::local
