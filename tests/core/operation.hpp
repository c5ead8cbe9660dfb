#pragma once

#include <vector>

#include "core/engine/requests.hpp"
#include "tests/core/reference.hpp"
#include "tests/core/sim_group.hpp"

namespace ringlet::test {

/// One collective on all ranks, with its inputs and its expected results.
struct Operation {
  Call call{};  // its rows, counts and algorithm are filled in by complete()
  std::uint16_t stream = 0;
  bool in_place = false;
  bool with_counts = false;                             // the _v form
  std::vector<std::int64_t> parts{};                    // rows of each rank's part, of the kinds that have parts
  std::vector<std::vector<std::int64_t>> traffic{};     // all_to_all: rows by source and destination
  std::vector<Values> inputs{}, outputs{}, expected{};  // by rank
  std::vector<Outcome*> outcomes{};

  bool is_root(int rank) const { return rank == call.root; }
};

/// Returns whether the kind has parts, as reduce-scatter, the gathers and scatter have.
bool has_parts(CollectiveKind kind);

/// Chooses `parts` or `traffic`: each part has `rows` rows, or, with counts, up to `rows`, and many are empty.
void choose_parts(Operation& operation, std::uint64_t rows, int size, SimRandom& random);

/// Makes inputs and expected results of an operation whose kind, dtype, op, root, divisor and rows or parts have been chosen.
void complete(Operation& operation, SimRandom& random, const WorldOptions& options);

/// Returns a random collective whose buffers have at most about `largest` bytes.
Operation random_operation(SimRandom& random, const WorldOptions& options, std::size_t largest);

/// Returns the request of one rank.
Result<CollectiveTask> make_task(Operation& operation, int rank, const WorldOptions& options);

/// Requires that every rank's operation has ended well and left what was expected.
void check_operation(Operation& operation, int size);

template <class T>
T pick(SimRandom& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

}  // namespace ringlet::test
