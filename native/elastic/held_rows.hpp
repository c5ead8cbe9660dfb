#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharding/row_spread.hpp"
#include "native/checkpoint/exchange.hpp"

namespace ringlet::native {

struct HeldRowsOptions {
  int copies = 2;
  double weight = 1;
  Stream stream{};
};

/// One shard that this rank holds.
struct HeldPart {
  int shard = -1;  // -1: none
  Tree parameters;
  Tree gradients;  // averaged; they have memory once make_gradients() was called
  std::unique_ptr<Optimizer> optimizer;
  std::vector<Tensor> memory;  // of the parameters, where these are not views of full tensors
  Tensor gradient_memory;
};

/// The rows of parameters and of an optimizer's state that this rank holds: its own shard, and the one whose second holder it is. They
/// move from world to world, and change in place of the old ones only when all ranks have theirs.
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

  /// See ElasticFsdp::enter(). Where parameters are views of full tensors it brings the rows to their holders only if some rank lacks them;
  /// `are_whole()` then is false.
  std::string enter(Group world);
  void loaded(std::uint64_t step);
  void forget() { generation_ = -1; }

  /// Makes memory for gradients of the dtypes of `full`, if there is none.
  void make_gradients(const Tree& full);
  /// Sends the gradients of this rank's own shard to its second holder, and receives those of the shard whose second holder it is.
  void exchange_gradients();
  /// Takes the optimizer's step on all parts. Throws `InvalidArgument` where there are no gradients for it.
  void update();

  Group& group() { return group_; }
  const Group& group() const { return group_; }
  Stream stream() const { return options_.stream; }
  const Tree& outline() const { return outline_; }
  const RowSpread& spread() const { return spread_; }
  ShardLayout layout() const { return spread_.layout(outline_); }
  /// By place; the first is this rank's own shard.
  std::vector<HeldPart>& parts() { return parts_; }
  std::uint64_t step() const { return step_; }
  std::size_t state_bytes() const;
  std::size_t parameter_bytes() const;
  /// Whether full parameters, of which the parts are views, have the last step's values.
  bool are_whole() const { return are_whole_; }
  void set_whole() { are_whole_ = true; }

 private:
  struct Told;
  CallOptions call() const { return {.stream = options_.stream}; }
  std::vector<HeldPart> make_parts(const RowSpread& spread, int rank) const;
  void make_optimizers(std::vector<HeldPart>& parts, std::uint64_t step) const;
  std::string describe();
  void move_rows(const Exchange& exchange, const std::vector<RowMove>& moves, const RowSpread& after, std::vector<HeldPart>& parts,
                 bool with_parameters);
  void take(Group world, RowSpread spread, std::vector<HeldPart> parts);

  Group group_;
  const Make make_;
  const HeldRowsOptions options_;
  Tree outline_;
  Tree full_;  // empty where the parts have memory of their own
  RowSpread spread_;
  int rank_;                     // in the world of `spread_`
  bool has_gradients_ = false;   // of this step, for all parts
  std::int64_t generation_ = 0;  // how often rows were spread anew; -1: this rank has none
  std::uint64_t step_ = 0;
  bool are_whole_ = false;
  std::vector<HeldPart> parts_;
};

}  // namespace ringlet::native
