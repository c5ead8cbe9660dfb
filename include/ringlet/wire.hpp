#pragma once

#include <ringlet/detail/language.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <string_view>

namespace ringlet {

/// A format in which floats cross the network in blocks: the elements of a block have one scale, a power of two in one byte, and an integer
/// code each. NaNs and infinities are kept, element by element. The numbers are part of the wire format: append only.
enum class BlockFormat : std::uint8_t {
  int8 = 0,  ///< 64 elements in 65 bytes, codes from -127 to 127
  int4 = 1,  ///< 32 elements in 17 bytes, codes from -7 to 7
};

namespace detail {

struct BlockFormatFacts {
  BlockFormat format;
  std::string_view name;
  std::size_t elements;  ///< of a block
  std::size_t code_bits;
};
inline constexpr std::array kBlockFormats{BlockFormatFacts{BlockFormat::int8, "int8", 64, 8},
                                          BlockFormatFacts{BlockFormat::int4, "int4", 32, 4}};
static_assert(in_order(kBlockFormats, &BlockFormatFacts::format));

}  // namespace detail

/// The number of block formats. They are numbered from 0 to one below it.
inline constexpr std::size_t kBlockFormatCount = detail::kBlockFormats.size();

/// Whether `value` is the number of a block format.
constexpr bool is_valid(BlockFormat value) noexcept { return static_cast<std::size_t>(value) < kBlockFormatCount; }
/// The name: "int8" or "int4"; the format must be valid.
constexpr std::string_view name_of(BlockFormat format) noexcept { return detail::kBlockFormats[static_cast<std::size_t>(format)].name; }
/// Elements of a block; the format must be valid.
constexpr std::size_t block_elements(BlockFormat format) noexcept {
  return detail::kBlockFormats[static_cast<std::size_t>(format)].elements;
}
/// Bytes of a block on the network; the format must be valid.
constexpr std::size_t block_bytes(BlockFormat format) noexcept {
  const auto& facts = detail::kBlockFormats[static_cast<std::size_t>(format)];
  return 1 + facts.elements * facts.code_bits / 8;
}

/// Options of Wire::int8 and Wire::int4, the same on all ranks.
struct BlockOptions {
  /// Whether each rank keeps what its rounding has left out (f32, twice per element of the full tensors), of its gradients and of the means
  /// whose parts it owned, and adds it to its gradients of the next step. Then no part of a gradient is lost for good, however small it is
  /// beside others of its block. The bits of a step then depend on who owned which part in those before; they are the same on all ranks.
  bool feedback = false;
  /// Tensors with fewer elements, such as norms and biases, are sent as bf16; 0: all are sent in blocks.
  std::size_t least_elements = 16 << 10;

  /// Whether both are the same.
  friend constexpr bool operator==(const BlockOptions&, const BlockOptions&) = default;
};

/// How real tensors cross the network when they are averaged: as f16, as bf16, or in blocks. Each rank rounds its own tensor once, the
/// owner of a part adds in f32 in the order of the ranks and rounds the mean once, and all ranks, the owner too, take the rounded mean. So
/// every rank ends with the same bits. An owner that keeps a mean in blocks for itself, as FSDP does, does not round it again.
class Wire {
 public:
  /// Sends in that dtype: f16 or bf16, and for FSDP any floating one; others are refused. A dtype can be given where a Wire is wanted.
  constexpr Wire(DType dtype) noexcept : dtype_(dtype) {}
  /// In blocks of 64 elements, 8 bits each: 1.02 bytes per element.
  static constexpr Wire int8(const BlockOptions& options = {}) noexcept { return {BlockFormat::int8, options}; }
  /// In blocks of 32 elements, 4 bits each: 0.53 bytes per element.
  static constexpr Wire int4(const BlockOptions& options = {}) noexcept { return {BlockFormat::int4, options}; }
  /// In blocks of that format, which is valid.
  static constexpr Wire in_blocks(BlockFormat format, const BlockOptions& options = {}) noexcept { return {format, options}; }

  /// The format of the blocks; nothing for f16 and bf16.
  constexpr std::optional<BlockFormat> blocks() const noexcept { return blocks_; }
  /// The dtype of tensors that are not sent in blocks.
  constexpr DType dtype() const noexcept { return dtype_; }
  /// Of the blocks.
  constexpr const BlockOptions& options() const noexcept { return options_; }

  /// Whether tensors are sent alike.
  friend constexpr bool operator==(const Wire&, const Wire&) = default;

 private:
  constexpr Wire(BlockFormat format, const BlockOptions& options) noexcept : dtype_(DType::bf16), blocks_(format), options_(options) {}

  DType dtype_;
  std::optional<BlockFormat> blocks_{};
  BlockOptions options_{};
};

/// The name: "f16", "bf16", "int8" or "int4".
constexpr std::string_view name_of(const Wire& wire) noexcept { return wire.blocks() ? name_of(*wire.blocks()) : name_of(wire.dtype()); }
/// Returns the wire that name_of gives this name, with these options if it has blocks; nothing if there is none.
constexpr std::optional<Wire> find_wire(std::string_view name, const BlockOptions& options = {}) noexcept {
  for (const detail::BlockFormatFacts& facts : detail::kBlockFormats)
    if (facts.name == name) return Wire::in_blocks(facts.format, options);
  if (const auto dtype = find_dtype(name); dtype && is_narrow(*dtype)) return Wire(*dtype);
  return std::nullopt;
}

}  // namespace ringlet
