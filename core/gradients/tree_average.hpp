#pragma once

#include <ringlet/average_options.hpp>
#include <ringlet/tree.hpp>

#include "core/gradients/averager.hpp"
#include "core/gradients/tree_agreement.hpp"

namespace ringlet {

/// Averages of gradients that are all there: what is wrong with one is found before anything moves, and what is copied is bounded.
class AverageOfAll final : public Procedure {
 public:
  /// What `gradients` view is borrowed until the end; `group` outlives this.
  /// `most_bytes` as Averager's; the default is a few buckets of the default size: one moves, the next stands ready for the stream, the
  /// others cover what packing and unpacking take.
  AverageOfAll(const WorldOptions& group, std::span<const TensorView> gradients, const AverageOptions& options,
               std::size_t most_bytes = 128 << 20);
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
