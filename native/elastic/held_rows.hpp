#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharding/row_holdings.hpp"
#include "native/elastic/row_tensors.hpp"
#include "native/elastic/row_transfers.hpp"

namespace ringlet::native {

struct HeldRowsOptions {
  int copies = 2;
  double weight = 1;
  std::int64_t rebuild_size = 32 << 20;
  Stream stream{};
};

/// The rows of parameters and of an optimizer's state that this rank holds: its own shard, and the one whose second holder it is. They
/// move from world to world: while a step is computed the first holders' come, and with the ranks' agreement on that step all take the new
/// ones in place of the old ones. Those of the second holders come in slices, each during a step: what has come by the end of a step is
/// updated in it. So all ranks know alike which rows are missing.
class HeldRows {
 public:
  using Make = std::function<std::unique_ptr<Optimizer>()>;

  /// Rows of the first world are where RowSpread has them with equal weights and each rank on a machine of its own, until enter().
  HeldRows(const Group& world, Make make, const HeldRowsOptions& options);

  /// Adds tensors before the first enter(): views of full tensors, whose rows then stay in them, or a copy of the rows that this rank
  /// holds.
  ///@{
  void view(const Tree& full);
  void copy_rows(const Tree& full);
  ///@}

  /// See ElasticShards::enter(). `settings` has what else is to be the same on all ranks, a line each. Where parameters are views of full
  /// tensors it brings the rows to their holders only if some rank lacks them; `are_whole()` then is false.
  std::string enter(Group world, std::string_view settings);
  void loaded(std::uint64_t step);
  void forget() { holdings_.forget(); }

  /// Begins in the background what is to be moved during this step, unless it has begun. To be called at the same place on all ranks.
  void start_moves();
  /// Ends all moves that have begun, after which the first holders have their rows. To be called at the same place on all ranks.
  void finish_moves();
  /// Makes memory for gradients of the dtypes of `full`, if there is none.
  void make_gradients(const Tree& full);
  /// Ends the step's moves. Sends the gradients of this rank's own shard to its second holder, and receives those of the shard whose second
  /// holder it is: of all rows that the second holders have.
  void exchange_gradients();
  /// Takes the optimizer's step on all parts. Throws `InvalidArgument` where there are no gradients for it.
  void update();

  Group& group() { return group_; }
  const Group& group() const { return group_; }
  Stream stream() const { return options_.stream; }
  const Tree& outline() const { return outline_; }
  const RowSpread& spread() const { return holdings_.current().spread; }
  ShardLayout layout() const { return spread().layout(outline_); }
  /// By place; the first is this rank's own shard.
  std::vector<HeldPart>& parts() { return holdings_.are_coming() ? next_parts_ : parts_; }
  const std::vector<HeldPart>& parts() const { return holdings_.are_coming() ? next_parts_ : parts_; }
  std::uint64_t step() const { return step_; }
  std::size_t state_bytes() const;
  std::size_t parameter_bytes() const;
  /// Whether full parameters, of which the parts are views, have the last step's values.
  bool are_whole() const { return are_whole_; }
  void set_whole() { are_whole_ = true; }
  /// Whether the second holders have computed all their rows in the last step.
  bool are_twofold() const { return holdings_.are_twofold(); }
  /// The bytes of rows, of all ranks, that are to move to second holders.
  std::size_t bytes_to_rebuild();

 private:
  CallOptions call() const { return {.stream = options_.stream}; }
  std::vector<RowStanding> tell(Group& world, std::string_view settings);
  void take();
  std::vector<HeldPart> make_parts(const RowSpread& spread, int rank) const;
  void make_optimizers(std::vector<HeldPart>& parts, std::uint64_t step) const;
  std::string describe(std::string_view settings);
  void start(const std::vector<RowMove>& moves, RowContents contents);
  std::vector<TensorView> gradients_at_second(HeldPart& part, const std::vector<RowMove>& missing);
  Tree with_rows(const HeldPart& part) const;
  std::vector<std::size_t> row_bytes();

  Group group_;
  const Make make_;
  const HeldRowsOptions options_;
  Tree outline_;
  Tree full_;                   // empty where the parts have memory of their own
  bool has_gradients_ = false;  // of this step, for all parts
  std::uint64_t step_ = 0;
  bool are_whole_ = false;
  RowHoldings holdings_;
  std::vector<HeldPart> parts_, next_parts_;  // of the rows held, and of those that take their place with the next step
  bool is_moving_ = false;                    // the moves of this step have begun
  RowTransfers transfers_;                    // declared last: its destructor waits for what uses the rows
};

}  // namespace ringlet::native
