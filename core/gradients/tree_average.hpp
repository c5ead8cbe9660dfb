#pragma once

#include <ringlet/average_options.hpp>
#include <ringlet/tree.hpp>
#include <vector>

#include "core/gradients/averager.hpp"
#include "core/gradients/tree_agreement.hpp"

namespace ringlet {

/// Averages a tree of gradients, once, after it has been compared between the ranks. What is wrong with a gradient is found before anything
/// moves, and what is copied is bounded.
class TreeAverage final : public Procedure {
 public:
  /// What `gradients` views is borrowed until the end. `agreements` are the group's; both outlive this.
  TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options);
  Action next() override;
  void abandon() override { averager_.abandon(); }

 private:
  Status add_all();

  TreeAgreement agreement_;
  const std::vector<TensorView> gradients_;
  const AverageOptions options_;
  Averager averager_;
  bool added_ = false;
};

}  // namespace ringlet
