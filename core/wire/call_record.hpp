#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ringlet/tensor.hpp>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/call.hpp"

namespace ringlet {

/// The bytes of a call's fingerprint: kind, dtype (128 + block format for blocks), op, algorithm (u8 each), root i32, rows u64,
/// row_elements u64, divisor f64, then one u64 per count of `between` the two ranks.
inline constexpr std::size_t kCallRecordBytes = 32;
/// The bytes of the longest record in a group of this size.
constexpr std::size_t max_call_record_bytes(int size) { return kCallRecordBytes + 8 * static_cast<std::size_t>(std::max(size, 2)); }

/// Appends the record of `call` for `peer`; returns its number of bytes.
std::size_t append_call(const Call& call, int peer, std::vector<std::byte>& out);
/// Returns nothing for a wrong size, a value out of range, or counts that do not belong to the kind.
std::optional<Call> decode_call(ConstBytes bytes);

/// The dtype and shape of a point-to-point message, on either side.
struct MessageShape {
  DType dtype = DType::f32;
  Shape shape{};

  friend bool operator==(const MessageShape&, const MessageShape&) = default;
  std::size_t bytes() const { return shape.count() * size_of(dtype); }
};

/// The longest record of a message's shape: dtype u8, number of axes u8, zero u16 and u32, then one i64 per axis.
inline constexpr std::size_t kMaxMessageShapeBytes = 8 + 8 * Shape::kMaxAxes;

struct MessageShapeRecord {
  std::array<std::byte, kMaxMessageShapeBytes> bytes;
  std::size_t size;
};

MessageShapeRecord encode_message_shape(const MessageShape& shape);
/// Returns nothing for a wrong size, a value out of range, or a product that overflows.
std::optional<MessageShape> decode_message_shape(ConstBytes bytes);

/// Describes the shape: "f32 (3, 4)".
std::string describe(const MessageShape& shape);

}  // namespace ringlet
