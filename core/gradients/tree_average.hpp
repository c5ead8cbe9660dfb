#pragma once

#include <ringlet/average_options.hpp>
#include <ringlet/tree.hpp>

#include "core/gradients/averager.hpp"
#include "core/gradients/tree_agreement.hpp"

namespace ringlet {

/// Averages of gradients that are all there: what is wrong with one is found before anything moves, and only a few buckets are under way
/// at a time.
class AverageOfAll final : public Procedure {
 public:
  /// What `gradients` view is borrowed until the end; `group` outlives this.
  AverageOfAll(const WorldOptions& group, std::span<const TensorView> gradients, const AverageOptions& options);
  Action next() override;
  void abandon() override { averager_.abandon(); }

 private:
  Status add_all();

  const std::vector<TensorView> gradients_;
  const AverageOptions options_;
  Averager averager_;
  bool added_ = false;
};

/// The same for a tree, which is compared between the ranks first.
class TreeAverage final : public Procedure {
 public:
  /// `agreements` are the group's; both outlive this.
  TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options);
  Action next() override;
  void abandon() override { average_.abandon(); }

 private:
  TreeAgreement agreement_;
  AverageOfAll average_;
  bool agreed_ = false;
};

}  // namespace ringlet
