#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/wire.hpp>
#include <string>
#include <vector>

#include "core/plan/collective_table.hpp"
#include "core/plan/purpose.hpp"

namespace ringlet {

/// A rank's call of a collective. It is the fingerprint that all ranks must agree on. `rows` x `row_elements` is the shape, with axis 0
/// apart from the rest. If there are `counts`, it is the `_v` form of its kind.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  Algorithm algorithm = Algorithm::exchange;
  Purpose purpose = Purpose::program;
  std::int32_t root = 0;   // used by kinds that have a root; of an all_gather 1 if ranks have the part of the rank before them already
  std::uint64_t rows = 0;  // of the whole buffer; for gathers, scatter and all_to_all of one part or, with counts, of all parts
  std::uint64_t row_elements = 1;
  double divisor = 1.0;  // the owner of a part divides by it, once
  /// The rows of each rank's part. For all_to_all_v first the rows that go to each rank, then those that come from each rank; `rows` is 0
  /// then.
  std::vector<std::uint64_t> counts{};
  /// If it is set, an element is a block of that format, whose f32 are reduced; `dtype` is f32 then.
  std::optional<BlockFormat> blocks{};

  std::size_t element_bytes() const { return blocks ? block_bytes(*blocks) : size_of(dtype); }
  std::size_t elements() const { return static_cast<std::size_t>(rows * row_elements); }
  std::size_t bytes() const { return elements() * element_bytes(); }
  /// Whether the reduced blocks are left decoded, in f32, because their owner keeps them: rounding once more would serve nobody.
  bool keeps_decoded() const { return blocks && kind == CollectiveKind::reduce_scatter; }
  friend bool operator==(const Call&, const Call&) = default;
};

/// Finds the kind that has this name, or whose `_v` form has it; nothing if there is none.
std::optional<CollectiveKind> find_collective(std::string_view name) noexcept;

/// Whether f16 and bf16 are rounded before all ranks' elements have been added.
constexpr bool rounds_partial_sums(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::ring || algorithm == Algorithm::machines;
}

/// Whether sums of this dtype, whose largest value is 65,504, would overflow where partial sums are rounded: f16. So the mean of such an
/// all-reduce divides the elements before it adds them; other means of f16 never go along a ring.
constexpr bool is_divided_first(DType dtype) noexcept { return is_narrow(dtype) && kind_of(dtype) == ElementKind::ieee_float; }

/// Whether the ranks' calls may differ, so that each pair of ranks has to agree about its own two counts: all_to_all_v.
inline bool is_pairwise(const Call& call) { return traits_of(call.kind).has_pair_counts && !call.counts.empty(); }

/// Whether it is an all_gather in which each rank's output has the part of the rank before it from the start.
inline bool has_part_before(const Call& call) { return call.kind == CollectiveKind::all_gather && call.root == 1; }

/// The part of `call` that `peer` must agree on: the call itself or, if it is pairwise, the call with two counts: the rows that go to
/// `peer` and the rows that come from it.
Call between(const Call& call, int peer);
/// Whether this rank's call `ours` agrees with the call of `peer`, given as `theirs` = between(its call, this rank).
bool agree(const Call& ours, const Call& theirs, int peer);

/// Describes a call: "all_reduce(sum, f32 x 1000, ring)", "all_gather_v(f32, rows 3+0+5, direct)". Of more than 16 parts only the first are
/// listed.
std::string describe(const Call& call);
/// Says more of a difference between two calls than `describe` shows: "; the parts of rank 17 differ: 3 and 5 rows", or what the ranks may
/// have done to come to it. Else empty.
std::string describe_difference(const Call& one, const Call& other);

/// The limits between algorithms, in bytes of the whole buffer. They are part of a group's configuration and equal on all ranks.
struct AlgorithmLimits {
  std::size_t exchange_bytes = 32 << 10;  // exchange up to this limit divided by the number of peers (doubling from four ranks on)
  std::size_t direct_bytes = 256 << 10;
};

/// Chooses the algorithm of a call among native ranks. It is a pure function, so that it is the same on every rank and in every run.
Algorithm choose_algorithm(CollectiveKind kind, std::size_t bytes, int size, const AlgorithmLimits& limits);

}  // namespace ringlet
