#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <string>
#include <vector>

#include "core/plan/collective_table.hpp"

namespace ringlet {

/// What a rank calls: the fingerprint that all ranks must agree on. `rows` x `row_elements` is the shape with axis 0 apart from the rest.
/// With `counts` it is the `_v` form of its kind.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  Algorithm algorithm = Algorithm::exchange;
  std::int32_t root = 0;   // of those that have one
  std::uint64_t rows = 0;  // of the whole buffer; of gathers, scatter and all_to_all of one part, or, with counts, of all parts
  std::uint64_t row_elements = 1;
  double divisor = 1.0;  // the owner divides by it, once
  /// Rows of each rank's part. Of each pair of ranks: first the rows that go to each rank, then those that come from each; `rows` is 0
  /// then.
  std::vector<std::uint64_t> counts{};

  std::size_t elements() const { return static_cast<std::size_t>(rows * row_elements); }
  std::size_t bytes() const { return elements() * size_of(dtype); }
  friend bool operator==(const Call&, const Call&) = default;
};

/// The kind of that name, or whose `_v` form has it; nothing where there is none.
std::optional<CollectiveKind> find_collective(std::string_view name) noexcept;

/// Whether the ranks' calls differ by nature, so that each pair has to agree about its own two counts: all_to_all_v.
inline bool is_pairwise(const Call& call) { return traits_of(call.kind).has_pair_counts && !call.counts.empty(); }

/// What of `call` concerns `peer`: the call itself, or, if pairwise, with two counts: the rows that go to it and those that come from it.
Call between(const Call& call, int peer);
/// Whether `peer`, whose call (as `between` gives it there) is `theirs`, and this rank, which calls `ours`, mean the same.
bool agree(const Call& ours, const Call& theirs, int peer);

/// "all_reduce(sum, f32 x 1000, ring)", "all_gather_v(f32, rows 3+0+5, direct)"; of more than 16 parts the first.
std::string describe(const Call& call);
/// How two calls of one kind disagree where `describe` may not show it: "; the parts of rank 17 differ: 3 and 5 rows". Else nothing.
std::string describe_difference(const Call& one, const Call& other);

/// Where the algorithms change, by bytes of the whole buffer. Part of a group's configuration: equal on all ranks.
struct AlgorithmLimits {
  std::size_t exchange_bytes = 32 << 10;  // up to here, divided by the number of peers: exchange, or doubling from four ranks on
  std::size_t direct_bytes = 256 << 10;
};

/// The algorithm of a call among native ranks: a pure function, so that it is the same on every rank and does not change from run to run.
Algorithm choose_algorithm(CollectiveKind kind, std::size_t bytes, int size, const AlgorithmLimits& limits);

}  // namespace ringlet
