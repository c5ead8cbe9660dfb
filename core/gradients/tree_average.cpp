#include "core/gradients/tree_average.hpp"

#include <utility>

namespace ringlet {

namespace {

std::vector<TensorView> views_of(const Tree& tree) {
  std::vector<TensorView> views;
  views.reserve(tree.size());
  for (const Leaf& leaf : tree) views.push_back(leaf.values);
  return views;
}

}  // namespace

TreeAverage::TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options)
    : agreement_(group, agreements, "average_gradients", gradients),
      gradients_(views_of(gradients)),
      options_(options),
      averager_(group.options(), options, Averager::kFewBuckets) {}

Procedure::Action TreeAverage::next() {
  if (!added_) {
    Action action = agreement_.next();
    const auto* done = std::get_if<Done>(&action);
    if (done == nullptr || !done->status.ok()) return action;
    if (Status status = add_all(); !status.ok()) return Done{std::move(status)};
    added_ = true;
  }
  return averager_.next();
}

Status TreeAverage::add_all() {
  if (Status status = Averager::check(options_); !status.ok()) return status;
  return averager_.add_all(gradients_);
}

}  // namespace ringlet
