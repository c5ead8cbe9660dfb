#include "core/wire/call_record.hpp"

#include <cstring>

#include "core/base/arithmetic.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

CallRecord encode_call(const Call& call) {
  CallRecord out{};
  out[0] = static_cast<std::byte>(call.kind);
  out[1] = static_cast<std::byte>(call.dtype);
  out[2] = static_cast<std::byte>(call.op);
  out[3] = static_cast<std::byte>(call.algorithm);
  detail::store_le(out.data() + 4, static_cast<std::uint32_t>(call.root));
  detail::store_le(out.data() + 8, call.rows);
  detail::store_le(out.data() + 16, call.row_elements);
  std::uint64_t divisor;
  std::memcpy(&divisor, &call.divisor, sizeof divisor);
  detail::store_le(out.data() + 24, divisor);
  return out;
}

std::optional<Call> decode_call(ConstBytes bytes) {
  if (bytes.size() != kCallRecordBytes) return std::nullopt;
  Call call;
  const auto at = [&](std::size_t index) { return static_cast<std::uint8_t>(bytes[index]); };
  if (at(0) >= kCollectiveKindCount || at(1) >= kDTypeCount || at(2) >= kReduceOpCount || at(3) >= kAlgorithmCount) return std::nullopt;
  call.kind = static_cast<CollectiveKind>(at(0));
  call.dtype = static_cast<DType>(at(1));
  call.op = static_cast<ReduceOp>(at(2));
  call.algorithm = static_cast<Algorithm>(at(3));
  call.root = static_cast<std::int32_t>(detail::load_le<std::uint32_t>(bytes.data() + 4));
  call.rows = detail::load_le<std::uint64_t>(bytes.data() + 8);
  call.row_elements = detail::load_le<std::uint64_t>(bytes.data() + 16);
  const auto divisor = detail::load_le<std::uint64_t>(bytes.data() + 24);
  std::memcpy(&call.divisor, &divisor, sizeof divisor);
  return call;
}

MessageShapeRecord encode_message_shape(const MessageShape& shape) {
  MessageShapeRecord record{};
  record.bytes[0] = static_cast<std::byte>(shape.dtype);
  record.bytes[1] = static_cast<std::byte>(shape.shape.axes());
  for (std::size_t axis = 0; axis < shape.shape.axes(); ++axis)
    detail::store_le(record.bytes.data() + 8 + 8 * axis, static_cast<std::uint64_t>(shape.shape[axis]));
  record.size = 8 + 8 * shape.shape.axes();
  return record;
}

std::optional<MessageShape> decode_message_shape(ConstBytes bytes) {
  if (bytes.size() < 8 || static_cast<std::uint8_t>(bytes[0]) >= kDTypeCount) return std::nullopt;
  const auto axes = static_cast<std::size_t>(bytes[1]);
  if (axes > Shape::kMaxAxes || bytes.size() != 8 + 8 * axes) return std::nullopt;
  std::array<std::int64_t, Shape::kMaxAxes> extents{};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const auto extent = detail::load_le<std::uint64_t>(bytes.data() + 8 + 8 * axis);
    if (extent > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    extents[axis] = static_cast<std::int64_t>(extent);
  }
  const auto dtype = static_cast<DType>(bytes[0]);
  if (!checked_bytes({extents.data(), axes}, size_of(dtype))) return std::nullopt;
  return MessageShape{dtype, Shape(std::span<const std::int64_t>(extents.data(), axes))};
}

std::string describe(const MessageShape& shape) { return std::string(name_of(shape.dtype)) + " " + to_string(shape.shape); }

}  // namespace ringlet
