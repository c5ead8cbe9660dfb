#pragma once

#include <ringlet/elastic_fsdp.hpp>
#include <vector>

#include "parameter_store.hpp"

namespace train_text {

/// FSDP with sharded parameters. A rank keeps only its shards of the parameters and of the optimizer's state. A module's full parameters
/// are gathered when it runs, while those of the next module are already on their way. Its gradients are averaged into shards as soon as
/// they are complete. In an elastic group another rank keeps the same shards, so that none is needed. So a model may be larger than a
/// rank's memory, as long as a few of its modules fit.
class FullySharded final : public ParameterStore {
 public:
  FullySharded(const Settings& settings, Transformer<float>& model, const ringlet::Group& group);

  void begin_forward(std::size_t module) override;
  void begin_backward(std::size_t module) override;
  void end_backward(std::size_t module) override;
  void begin_gradients(int samples, int batch, int ranks) override;
  double gradient_scale() const override { return gradient_scale_; }
  void average() override;
  void apply_gradients() override { sharded_.update(); }
  bool survives_losses() const override { return true; }
  std::string set_group(const ringlet::Group& group) override;
  std::optional<std::uint64_t> steps_in_group() const override { return sharded_.step(); }
  std::size_t parameter_bytes() const override { return sharded_.parameter_bytes(); }
  std::size_t optimizer_bytes() const override { return sharded_.state_bytes(); }
  void loaded(std::uint64_t steps) override { sharded_.loaded(steps); }
  void add_to(ringlet::Checkpoint& checkpoint) override;
  std::uint64_t parameter_hash() override;

 private:
  struct InUse {
    std::size_t module;
    ringlet::FullyShard::Unsharded parameters;
  };
  void use(InUse wanted);
  void release();

  std::deque<Module<float>>& modules_;
  ringlet::ElasticFullyShard sharded_;
  std::optional<InUse> in_use_;
  ringlet::Tensor gradients_;  // of the module that runs; as large as the largest module, and aligned as in FlatParameters
  double gradient_scale_ = 1;
};

}  // namespace train_text
