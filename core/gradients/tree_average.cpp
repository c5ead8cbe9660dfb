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

AverageOfAll::AverageOfAll(const WorldOptions& group, std::span<const TensorView> gradients, const AverageOptions& options,
                           std::size_t most_bytes)
    : gradients_(gradients.begin(), gradients.end()), options_(options), averager_(group, options, most_bytes) {}

Procedure::Action AverageOfAll::next() {
  if (!std::exchange(added_, true))
    if (Status status = add_all(); !status.ok()) return Done{std::move(status)};
  return averager_.next();
}

Status AverageOfAll::add_all() {
  if (Status status = Averager::check(options_); !status.ok()) return status;
  for (const TensorView& gradient : gradients_)
    if (Status status = averager_.add(gradient); !status.ok()) return status;
  averager_.close();
  return {};
}

TreeAverage::TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options)
    : agreement_(group, agreements, "average_gradients", gradients), average_(group.options(), views_of(gradients), options) {}

Procedure::Action TreeAverage::next() {
  if (!agreed_) {
    Action action = agreement_.next();
    const auto* done = std::get_if<Done>(&action);
    if (done == nullptr || !done->status.ok()) return action;
    agreed_ = true;
  }
  return average_.next();
}

}  // namespace ringlet
