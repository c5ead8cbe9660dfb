#pragma once

#include "flat_parameters.hpp"
#include "placement.hpp"

namespace train_text {

/// Every rank has all parameters, all gradients and the whole optimizer state. Gradients are averaged while the backward pass computes the
/// rest; then every rank applies the same average, and so the ranks stay equal.
class DataParallel final : public Placement {
 public:
  DataParallel(const Options& options, Transformer<float>& model, ringlet::Group group);

  void gradients_ready(std::span<float> gradients) override;
  void apply_gradients() override;
  std::size_t parameter_bytes() const override { return parameters_.bytes(); }
  void add_to(ringlet::Checkpoint& checkpoint) override;
  std::uint64_t parameter_hash() override;

 private:
  FlatParameters<float> memory_;
  ringlet::Tree parameters_;
  ringlet::Tree gradients_;
  ringlet::GradientAverager averager_;
};

}  // namespace train_text
