#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/sharding/row_holdings.hpp"
#include "tests/core/sim_broken.hpp"
#include "tests/core/sim_state.hpp"

// The state of a simulated training whose rows have two holders each. What is decided is decided by core/sharding/row_holdings.hpp.
namespace ringlet::test {

/// Rows follow each other through the tensors; there is one for each parameter.
inline constexpr std::size_t kSimRows = kSimParameters;

/// Rows that travel between two ranks, or what has come of them.
struct RowTransfer {
  RowMove move;
  int peer = 0;
  bool sends = false;
  bool has_parameters = true, has_momenta = true;
  std::vector<float> values;
};

/// The rows that a process holds: in place 0 its own shard, in place 1 the one whose second holder it is.
class SimRows {
 public:
  enum class Contents : std::uint8_t { parameters, momenta, both };
  /// What is in one place; rows that are not here have no number.
  struct Copy {
    std::array<bool, kSimRows> has{};
    SimState values{};
  };
  using Copies = std::array<Copy, 2>;

  /// A rank of a world of so many; those with which the training begins have rows.
  SimRows(int ranks, int rank, bool has_rows, BrokenTrainer broken);

  /// For the other ranks, where a world begins.
  std::string standing(int machine, double weight) const;
  /// Says which rows are lost with all their holders, or "".
  std::string enter(const std::vector<std::string>& told, int rank);
  bool is_fresh() const { return is_fresh_; }
  bool are_coming() const { return holdings_.are_coming(); }
  std::uint64_t step() const { return step_; }

  /// The transfers to first holders; rows that stay on this rank are where they belong when this returns.
  std::vector<RowTransfer> moves_to_first(Contents contents);
  /// Those that belong to a step.
  std::vector<RowTransfer> moves_of_step();
  /// Those of the averaged gradients, of which this rank knows only those of its own shard.
  std::vector<RowTransfer> gradients_to_second(const std::vector<float>& sum);
  /// All of them have come.
  void finish(const std::vector<RowTransfer>& transfers);
  void finish_gradients(const std::vector<RowTransfer>& transfers);

  /// This rank's own shard, and who has which row of it among all that were gathered.
  const SimState& own() const;
  SimState join(const std::vector<SimState>& all) const;
  /// All ranks take the rows that have come, and then the step.
  void take();
  void update();

  /// First holders have the rows of this state.
  void load(std::uint64_t step, const SimState& state);
  void forget() { holdings_.forget(); }

  /// What counts of this rank's rows after its last step.
  Copies copies() const;
  bool holds(std::size_t row, std::uint64_t step) const;

 private:
  using Memory = std::array<SimState, 2>;

  bool is(BrokenTrainer broken) const { return broken_ == broken; }
  Memory& current() { return holdings_.are_coming() ? next_ : held_; }
  const Memory& current() const { return holdings_.are_coming() ? next_ : held_; }
  std::vector<RowTransfer> start(const std::vector<RowMove>& moves, Contents contents);

  const BrokenTrainer broken_;
  RowHoldings holdings_;
  Memory held_, next_;
  std::array<std::array<float, kSimRows>, 2> gradients_{};
  std::uint64_t step_ = 0;
  int rank_;  // in the newest world
  bool is_fresh_ = false;
};

}  // namespace ringlet::test
