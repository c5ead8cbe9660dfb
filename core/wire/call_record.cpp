#include "core/wire/call_record.hpp"

#include <cstring>

#include "core/base/arithmetic.hpp"
#include "core/wire/control.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

namespace {

/// The number of an element's type: a dtype's, or with this bit that of a block format.
constexpr std::uint8_t kBlocksBit = 0x80;

/// The root's number has three bytes, and the purpose the one after them.
constexpr std::uint32_t kRootMask = 0xffffff;
static_assert(wire::kMaxRanks <= kRootMask);

/// Whether a record of this kind may hold this number of counts.
bool counts_fit(CollectiveKind kind, std::size_t counts) {
  const CollectiveTraits& traits = traits_of(kind);
  return counts == 0 || traits.has_counts || (traits.has_pair_counts && counts == 2);
}

}  // namespace

std::size_t append_call(const Call& call, int peer, std::vector<std::byte>& out) {
  const std::size_t start = out.size();
  const auto append = [&out](std::uint64_t value) {
    out.resize(out.size() + 8);
    detail::store_le(out.data() + out.size() - 8, value);
  };
  out.resize(start + 8);
  out[start] = static_cast<std::byte>(call.kind);
  out[start + 1] =
      static_cast<std::byte>(call.blocks ? kBlocksBit | static_cast<std::uint8_t>(*call.blocks) : static_cast<std::uint8_t>(call.dtype));
  out[start + 2] = static_cast<std::byte>(call.op);
  out[start + 3] = static_cast<std::byte>(call.algorithm);
  detail::store_le(out.data() + start + 4, static_cast<std::uint32_t>(call.root));
  out[start + 7] = static_cast<std::byte>(call.purpose);
  append(call.rows);
  append(call.row_elements);
  std::uint64_t divisor;
  std::memcpy(&divisor, &call.divisor, sizeof divisor);
  append(divisor);
  if (is_pairwise(call))
    for (const std::uint64_t count : between(call, peer).counts) append(count);
  else
    for (const std::uint64_t count : call.counts) append(count);
  return out.size() - start;
}

std::optional<Call> decode_call(ConstBytes bytes) {
  if (bytes.size() < kCallRecordBytes || bytes.size() % 8 != 0) return std::nullopt;
  Call call;
  const auto at = [&](std::size_t index) { return std::to_integer<std::int64_t>(bytes[index]); };
  const auto number = [&](std::size_t index) { return detail::load_le<std::uint64_t>(bytes.data() + index); };
  const auto kind = from_number<CollectiveKind>(at(0));
  const bool in_blocks = (at(1) & kBlocksBit) != 0;
  const auto blocks = from_number<BlockFormat>(at(1) & ~kBlocksBit);
  const auto dtype = in_blocks ? std::optional(DType::f32) : from_number<DType>(at(1));
  const auto op = from_number<ReduceOp>(at(2));
  const auto algorithm = from_number<Algorithm>(at(3));
  const auto purpose = from_number<Purpose>(at(7));
  if (!kind || !dtype || !op || !algorithm || !purpose || (in_blocks && !blocks)) return std::nullopt;
  call.kind = *kind;
  call.dtype = *dtype;
  if (in_blocks) call.blocks = blocks;
  call.op = *op;
  call.algorithm = *algorithm;
  call.purpose = *purpose;
  call.root = static_cast<std::int32_t>(detail::load_le<std::uint32_t>(bytes.data() + 4) & kRootMask);
  call.rows = number(8);
  call.row_elements = number(16);
  const std::uint64_t divisor = number(24);
  std::memcpy(&call.divisor, &divisor, sizeof divisor);
  if (!counts_fit(call.kind, (bytes.size() - kCallRecordBytes) / 8)) return std::nullopt;
  for (std::size_t offset = kCallRecordBytes; offset < bytes.size(); offset += 8) call.counts.push_back(number(offset));
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
  if (bytes.size() < 8) return std::nullopt;
  const auto dtype = from_number<DType>(std::to_integer<std::int64_t>(bytes[0]));
  if (!dtype) return std::nullopt;
  const auto axes = static_cast<std::size_t>(bytes[1]);
  if (axes > Shape::kMaxAxes || bytes.size() != 8 + 8 * axes) return std::nullopt;
  std::array<std::int64_t, Shape::kMaxAxes> extents{};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const auto extent = detail::load_le<std::uint64_t>(bytes.data() + 8 + 8 * axis);
    if (extent > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    extents[axis] = static_cast<std::int64_t>(extent);
  }
  if (!checked_bytes({extents.data(), axes}, size_of(*dtype))) return std::nullopt;
  return MessageShape{*dtype, Shape(std::span<const std::int64_t>(extents.data(), axes))};
}

std::string describe(const MessageShape& shape) { return std::string(name_of(shape.dtype)) + " " + to_string(shape.shape); }

}  // namespace ringlet
