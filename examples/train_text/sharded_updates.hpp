#pragma once

#include <ringlet/elastic_fsdp.hpp>

#include "flat_parameters.hpp"
#include "parameter_store.hpp"

namespace train_text {

/// FSDP with full parameters. Every rank has all parameters and gradients, but updates only its shard of the parameters, and keeps the
/// optimizer's state for that shard alone. In an elastic group another rank does the same for that shard, so that none is needed.
class ShardedUpdates final : public ParameterStore {
 public:
  ShardedUpdates(const Settings& settings, Transformer<float>& model, const ringlet::Group& group);

  void begin_forward(std::size_t module) override;
  void begin_gradients(int samples, int batch, int ranks) override;
  double gradient_scale() const override { return gradient_scale_; }
  std::span<float> values() override { return memory_.values(); }
  void average() override;
  void apply_gradients() override { fsdp_.update(); }
  bool survives_losses() const override { return true; }
  std::string set_group(const ringlet::Group& group) override { return fsdp_.enter(group); }
  void forget() override { fsdp_.forget(); }
  std::optional<std::uint64_t> steps_in_group() const override { return fsdp_.step(); }
  std::size_t parameter_bytes() const override { return parameters_.bytes(); }
  std::size_t optimizer_bytes() const override { return fsdp_.state_bytes(); }
  void add_to(ringlet::Checkpoint& checkpoint) override;
  void loaded(std::uint64_t steps) override { fsdp_.loaded(steps); }
  std::uint64_t parameter_hash() override;

 private:
  /// Brings the last step's rows to all ranks, if they are not there yet.
  void complete();

  FlatParameters<float> memory_;
  ringlet::Tree parameters_;
  ringlet::Tree gradients_;
  ringlet::ElasticFsdp fsdp_;
  double gradient_scale_ = 1;
};

}  // namespace train_text
