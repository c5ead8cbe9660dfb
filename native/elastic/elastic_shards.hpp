#pragma once

#include <atomic>
#include <optional>
#include <ringlet/elastic_fsdp.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/sharding/shard_moves.hpp"
#include "native/elastic/held_rows.hpp"
#include "native/procedure_driver.hpp"

namespace ringlet {

namespace native {

template <class Named>
std::string name_or_unset(const std::optional<Named>& one) {
  return std::string(one ? name_of(*one) : "unset");
}

}  // namespace native

/// What both kinds of elastic shards have.
struct ElasticShards::State {
  State(const Group& world, MakeOptimizer make, const native::HeldRowsOptions& options, std::optional<double> norm);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;

  /// Ends what belongs to the last world, and begins in that of the rows.
  virtual void leave_world() = 0;
  virtual void begin_in_world() = 0;
  virtual void gather() = 0;
  virtual void add_parameters(Checkpoint& checkpoint, std::string_view name) = 0;
  /// Those of this rank's gradients, which stay with it from world to world: by module, or of all tensors.
  virtual std::span<ShardResiduals> residuals() = 0;
  virtual void add_residuals(Checkpoint& checkpoint) = 0;
  /// What is to be the same on all ranks beside `max_norm` and the rows, a line each.
  virtual std::string settings() const = 0;
  std::string enter(Group world);
  void add_to(Checkpoint& checkpoint, std::string_view parameters, std::string_view optimizer);
  void update();
  void loaded(std::uint64_t step);
  void forget();
  /// Clips the averaged gradients, if that is wanted, and returns their norm before.
  std::optional<double> clip();

  native::HeldRows rows;
  const std::optional<double> max_norm;
  std::atomic<bool> is_entering = false;
  bool has_begun = false;
  double share = 1;  // of the step's samples, times the number of ranks
};

}  // namespace ringlet
