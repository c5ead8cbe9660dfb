#pragma once

#include <memory>
#include <ringlet/optimizers.hpp>

#include "flat_parameters.hpp"
#include "parameter_store.hpp"

namespace train_text {

/// The common part of native ranks' and browsers' replicas. Every rank has all parameters, all gradients and the whole optimizer state, and
/// applies the same average, so the ranks stay equal.
class Replica : public ParameterStore {
 public:
  Replica(const Settings& settings, Transformer<float>& model);

  std::span<float> values() override { return memory_.values(); }
  void apply_gradients() override;
  std::size_t parameter_bytes() const override { return parameters_.bytes(); }
  std::size_t optimizer_bytes() const override { return optimizer_->state_bytes(); }
  ringlet::Tree whole_state() override { return optimizer_->state(); }
  void set_steps_done(std::uint64_t steps) override { optimizer_->set_step(steps); }
  ringlet::Optimizer& optimizer() { return *optimizer_; }
  const ringlet::Tree& parameters() const { return parameters_; }
  std::uint64_t parameter_hash() override;

 protected:
  FlatParameters<float> memory_;
  ringlet::Tree parameters_;
  ringlet::Tree gradients_;
  std::unique_ptr<ringlet::Optimizer> optimizer_;
};

/// A replica whose share is computed a few samples at a time, so that the thread can do other work in between. The group averages
/// `parts()`. This class starts no average itself; its caller does.
class SlicedReplica final : public Replica {
 public:
  SlicedReplica(const Settings& settings, Transformer<float>& model);

  void begin_gradients(int samples, int batch, int ranks) override;
  void end_slice(double part_of_share) override;
  bool passes_without_samples() const override { return false; }
  void apply_gradients() override;
  /// The gradients of the whole share, in the order in which they are averaged. Valid once all slices have ended.
  const ringlet::Tree& parts() const { return parts_; }

 private:
  ringlet::Tensor sums_memory_;
  std::span<float> sums_;
  ringlet::Tree parts_;
};

}  // namespace train_text
