#pragma once

#include <ringlet/fsdp.hpp>
#include <ringlet/sharding.hpp>

#include "flat_parameters.hpp"
#include "parameter_store.hpp"

namespace train_text {

/// FSDP with full parameters. Every rank has all parameters and gradients, but updates only its shard of the parameters, and keeps the
/// optimizer's state for that shard alone.
class ShardedUpdates final : public ParameterStore {
 public:
  ShardedUpdates(const Settings& settings, Transformer<float>& model, ringlet::Group group);

  void begin_gradients(int samples, int batch, int ranks) override;
  double gradient_scale() const override { return gradient_scale_; }
  std::span<float> values() override { return memory_.values(); }
  void apply_gradients() override;
  std::size_t parameter_bytes() const override { return parameters_.bytes(); }
  void add_to(ringlet::Checkpoint& checkpoint) override;
  std::uint64_t parameter_hash() override;
  double communication_seconds() const override { return communication_.seconds() - updating_.seconds(); }

 private:
  FlatParameters<float> memory_;
  ringlet::Tree parameters_;
  ringlet::Tree gradients_;
  ringlet::ShardLayout layout_;
  ringlet::FsdpUpdater updater_;
  double gradient_scale_ = 1;
  Stopwatch updating_;
};

}  // namespace train_text
