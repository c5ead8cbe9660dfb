#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/wire/frame.hpp"

namespace ringlet::local {

/// The records that a PeerMemoryLink sends over its inner link. The numbers are part of the protocol: new records are added at the end.
enum class RecordKind : std::uint8_t {
  data = 1,        // `length` bytes follow
  pull = 2,        // the direction's next `length` bytes are at this address of the sender's memory, in this epoch
  last_pull = 3,   // the same, for the last one of a batch: the receiver answers with `taken` or `unreadable`
  taken = 4,       // the receiver has all bytes up to this position
  unreadable = 5,  // the receiver has all bytes up to this position, and skips all further ones until `restart`
  restart = 6,     // the sender continues at the position given by `unreadable`
  end = 7,         // the sender's direction ends
};

/// A record in memory. On the wire it is little-endian: length u32, kind u8, three zero bytes; then address u64 and epoch u64 for `pull`
/// and `last_pull`, or position u64 for `taken` and `unreadable`.
struct Record {
  RecordKind kind = RecordKind::end;
  std::uint32_t length = 0;
  std::uint64_t first = 0;   // address or position
  std::uint64_t second = 0;  // epoch
};

inline constexpr std::size_t kShortRecordBytes = 8;
inline constexpr std::size_t kMaxRecordBytes = 24;
inline constexpr std::uint32_t kMaxRecordLength = 64u << 20;

/// Returns the encoded size of the record that begins with these kShortRecordBytes bytes, or 0 if it breaks the protocol.
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

/// Decodes a record; `in` must have at least record_bytes(in) bytes.
inline Record decode_record(const std::byte* in) {
  const std::size_t bytes = record_bytes(in);
  Record record;
  record.length = detail::load_le<std::uint32_t>(in);
  record.kind = static_cast<RecordKind>(in[4]);
  if (bytes > kShortRecordBytes) record.first = detail::load_le<std::uint64_t>(in + 8);
  if (bytes == kMaxRecordBytes) record.second = detail::load_le<std::uint64_t>(in + 16);
  return record;
}

/// Encodes the record to `out`, which has room for kMaxRecordBytes bytes, and returns how many it has written.
inline std::size_t encode_record(const Record& record, std::byte* out) {
  detail::store_le(out, record.length);
  detail::store_le(out + 4, static_cast<std::uint32_t>(record.kind));
  const std::size_t bytes = record_bytes(out);
  if (bytes > kShortRecordBytes) detail::store_le(out + 8, record.first);
  if (bytes == kMaxRecordBytes) detail::store_le(out + 16, record.second);
  return bytes;
}

}  // namespace ringlet::local
