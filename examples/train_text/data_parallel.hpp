#pragma once

#include <ringlet/gradients.hpp>
#include <ringlet/group.hpp>

#include "replica.hpp"

namespace train_text {

/// A native rank's replica. Among native ranks, gradients are averaged while the backward pass still computes. Browsers cannot do that, so
/// in a group with browsers all gradients are averaged after the pass, with the same call that browsers make.
class DataParallel final : public Replica {
 public:
  DataParallel(const Settings& settings, Transformer<float>& model, ringlet::Group group);

  void begin_gradients(int samples, int batch, int ranks) override;
  void gradients_ready(std::span<float> gradients) override;
  void average() override;
  void add_to(ringlet::Checkpoint& checkpoint) override;
  bool survives_losses() const override { return true; }
  std::string set_group(const ringlet::Group& group) override;

 private:
  const Settings settings_;
  ringlet::Group group_;
  ringlet::AverageOptions options_;
  bool weighted_;
  bool overlapped_;
  ringlet::Tree parts_;
  ringlet::GradientAverager averager_;
};

}  // namespace train_text
