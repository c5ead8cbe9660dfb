#pragma once

#include <cstdint>
#include <ringlet/sharding.hpp>
#include <ringlet/tensor.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/engine/left_by_rounding.hpp"
#include "core/gradients/residuals.hpp"
#include "core/gradients/wire_format.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

/// The memory that a bucket packs into. It grows as needed and is passed from one bucket to the next.
struct BucketMemory {
  std::vector<std::byte> packed;
  std::vector<std::byte> reduced;
};

/// Tensors that move together between their full form and the ranks' shards. The packed form is ordered by rank, and within a rank's part
/// by tensor, so that one reduce-scatter or all-gather moves them all. In blocks, each rank's rows of a tensor begin with a block of their
/// own.
class ShardBucket {
 public:
  /// `names` are the bucket's tensors in `layout`. They are moved in `wire_format`.
  ShardBucket(const ShardLayout& layout, std::vector<std::string> names, const WireFormat& wire_format);

  const WireFormat& wire_format() const { return wire_format_; }
  /// The number of elements, or of blocks, of each rank's part.
  std::span<const std::int64_t> counts() const { return counts_; }

  /// Lends the bucket `memory` to pack into, until take_memory().
  void lend_memory(BucketMemory memory) { memory_ = std::move(memory); }
  BucketMemory take_memory() { return std::exchange(memory_, {}); }

  /// Packs full tensors, cast to the wire dtype.
  void pack_full(const Tree& full, const simd::Kernels& kernels);
  /// Packs full tensors in blocks, multiplied by `factor`; where that is 0 they may be anything. `residuals`, by a tensor's place in
  /// `full`, are null without error feedback.
  void pack_full_in_blocks(const Tree& full, double factor, Residuals* residuals, const simd::Kernels& kernels);
  /// Packs a rank's shards into its part, cast to the wire dtype.
  void pack_shards(const Tree& shards, int rank, const simd::Kernels& kernels);
  /// Writes the packed values into full tensors, cast to their dtypes.
  void unpack_full(const Tree& full, const simd::Kernels& kernels);

  /// The bytes of all parts together.
  Bytes packed_bytes();
  /// All parts together, and one rank's part, as flat tensors of the wire dtype.
  TensorView packed();
  TensorView part(int rank);
  /// `reduced` is the output of a reduce-scatter, this rank's part: of the wire dtype, or f32 where it was in blocks, which are filled up.
  /// `unpack_reduced` writes it to the shards' tensors, cast to their dtypes.
  TensorView reduced(int rank);
  void unpack_reduced(const Tree& shards, const simd::Kernels& kernels);
  /// Packs `reduced` in blocks for a sum over replicas, and returns them; they take the place of what was packed before. `residuals`, where
  /// `number` is the bucket's, are null without error feedback; left() is where what rounding that sum leaves is added to them, else null.
  ///@{
  Bytes pack_reduced_in_blocks(int rank, std::size_t number, Residuals* residuals, const simd::Kernels& kernels);
  const LeftByRounding* left() const { return left_.empty() ? nullptr : &left_; }
  ///@}

 private:
  struct Piece {
    std::size_t first;  // index of its first element, or block, in the packed form
    RowRange rows;
  };
  const Piece& piece(std::size_t tensor, int rank) const { return pieces_[static_cast<std::size_t>(rank) * names_.size() + tensor]; }
  std::size_t packed_units() const { return static_cast<std::size_t>(firsts_.back() + counts_.back()); }
  const WireFormat wire_format_;
  const std::vector<std::string> names_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> firsts_;  // element, or block, at which each rank's part begins
  std::vector<Piece> pieces_;         // by rank, then tensor
  BucketMemory memory_;
  LeftByRounding left_;
};

}  // namespace ringlet
