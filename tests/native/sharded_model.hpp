#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

namespace ringlet::test {

/// Divides evenly by up to four ranks, so that a rank's mean over its samples has the weight 1.
inline constexpr std::uint64_t kShardedBatch = 12;

/// A model with tensors of fewer rows than ranks, whose every bit depends on all gradients of all steps.
class ShardedModel {
 public:
  explicit ShardedModel(std::size_t large = 40) {
    for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{{"layers.weight", {7, 3}},
                                                                                {"layers.bias", {5}},
                                                                                {"scale", Shape{}},
                                                                                {"one", {1, 2}},
                                                                                {"large", {static_cast<std::int64_t>(large)}}}) {
      memory_.emplace_back(DType::f32, shape);
      parameters.add(name, memory_.back().view());
      memory_.emplace_back(DType::f32, shape);
      gradients.add(name, memory_.back().view());
    }
    for (const Leaf& leaf : parameters)
      for (std::size_t i = 0; i < leaf.values.count(); ++i) values(leaf)[i] = 1.0F + 0.25F * static_cast<float>(i % 7);
  }

  /// The mean over the samples of a part of the batch. It depends on the parameters, and each addition rounds.
  void compute_gradients(std::uint64_t step, std::uint64_t first, std::uint64_t count) {
    for (std::size_t tensor = 0; tensor < gradients.size(); ++tensor) {
      float* gradient = values(gradients[tensor]);
      const std::size_t elements = gradients[tensor].values.count();
      for (std::size_t i = 0; i < elements; ++i) gradient[i] = 0.01F * values(parameters[tensor])[i];
      for (std::uint64_t sample = first; sample < first + count; ++sample) {
        const auto spread = static_cast<float>((step * 977 + sample * 131 + tensor * 31) % 1009) / 7;
        for (std::size_t i = sample % 3; i < elements; i += 3) gradient[i] += spread / static_cast<float>(count);
      }
    }
  }

  std::uint64_t hash() const {
    std::uint64_t hash = 14'695'981'039'346'656'037U;
    for (const Leaf& leaf : parameters)
      for (std::size_t i = 0; i < leaf.values.count(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, values(leaf) + i, sizeof bits);
        hash = (hash ^ bits) * 1'099'511'628'211U;
      }
    return hash;
  }

  static float* values(const Leaf& leaf) { return reinterpret_cast<float*>(leaf.values.data()); }

  Tree parameters, gradients;

 private:
  std::vector<Tensor> memory_;
};

inline std::unique_ptr<Optimizer> make_adam() { return std::make_unique<AdamW>(0.05, AdamWOptions{.bias_correction = true}); }

/// The model's elastic shards, in one of the two ways, with the same calls.
class ModelShards {
 public:
  ModelShards(const Group& world, ShardedModel& model, bool shards_parameters, const ElasticFsdpOptions& options) : model_(model) {
    if (!shards_parameters) {
      fsdp_.emplace(world, model.parameters, make_adam, options);
      return;
    }
    full_.emplace(world, make_adam,
                  ElasticFullyShardOptions{.copies = options.copies,
                                           .shard_weight = options.shard_weight,
                                           .rebuild_size = options.rebuild_size,
                                           .reduce_dtype = options.reduce_dtype,
                                           .max_norm = options.max_norm});
    full_->add("layers", module(model.parameters, 0));
    full_->add("rest", module(model.parameters, 1));
  }
  ElasticShards& shards() { return full_ ? static_cast<ElasticShards&>(*full_) : *fsdp_; }
  /// Fills the model's parameters, where they are sharded.
  void fetch() {
    for (std::size_t i = 0; full_ && i < 2; ++i) {
      const FullyShard::Unsharded unsharded = full_->forward(i);
      const Tree parameters = module(model_.parameters, i);
      for (const auto& [name, values] : unsharded.parameters()) copy(values, parameters.at(name));
    }
  }
  void average() {
    if (fsdp_) {
      fsdp_->average(model_.gradients);
      return;
    }
    for (const std::size_t i : {1, 0}) {
      const FullyShard::Unsharded unsharded = full_->backward(i);
      full_->reduce_gradients(i, module(model_.gradients, i));
    }
    full_->finish();
  }

 private:
  static Tree module(const Tree& tree, std::size_t index) {
    if (index == 0) return tree.below("layers");
    return {{"scale", tree.at("scale")}, {"one", tree.at("one")}, {"large", tree.at("large")}};
  }

  ShardedModel& model_;
  std::optional<ElasticFsdp> fsdp_;
  std::optional<ElasticFullyShard> full_;
};

/// A step that was committed.
struct CommittedStep {
  int ranks = 0;
  std::uint64_t hash = 0;
};

/// Does the same steps with as many ranks each, undisturbed, by FsdpUpdater, whose state is carried from one number of ranks to the next.
/// Returns the first step that differs.
inline std::optional<std::uint64_t> first_step_that_differs(const std::vector<CommittedStep>& steps, std::optional<double> max_norm,
                                                            std::size_t large = 40) {
  std::mutex mutex;
  std::optional<std::uint64_t> differs;
  std::map<std::string, std::vector<float>> whole;  // of parameters and state
  for (std::uint64_t begin = 0; begin < steps.size() && !differs;) {
    const int ranks = steps[begin].ranks;
    std::uint64_t end = begin;
    while (end < steps.size() && steps[end].ranks == ranks) ++end;
    const auto before = whole;
    run_ranks(ranks, [&](Group& group) {
      ShardedModel model(large);
      const ShardLayout layout(model.parameters, ranks);
      const auto optimizer = make_adam();
      // One rank alone takes the step on the full tensors.
      optimizer->init(ranks == 1 ? model.parameters : layout.shard(model.parameters, group.rank()));
      optimizer->set_step(begin);
      // Where a rank's rows of a tensor are in the whole one.
      const auto rows = [&](const std::string& parameter, std::vector<float>& all) {
        const RowRange range = layout.rows(parameter, group.rank());
        const Shape& shape = layout.full_shape(parameter);
        const std::size_t row = shape.axes() == 0 ? 1 : shape.count() / static_cast<std::size_t>(shape[0]);
        return all.data() + static_cast<std::size_t>(range.begin) * row;
      };
      const auto state = [&] { return optimizer->state(); };
      const auto parameter_of = [](const std::string& slot) { return slot.substr(0, slot.rfind('.')); };
      if (begin > 0) {
        auto given = before;
        for (const Leaf& leaf : model.parameters) std::copy_n(given[leaf.name].data(), leaf.values.count(), ShardedModel::values(leaf));
        for (const Leaf& leaf : state())
          std::copy_n(rows(parameter_of(leaf.name), given[leaf.name]), leaf.values.count(), ShardedModel::values(leaf));
      }
      FsdpUpdater updater(group, {.max_norm = max_norm});
      const std::uint64_t count = kShardedBatch / static_cast<std::uint64_t>(ranks);
      for (std::uint64_t step = begin; step < end; ++step) {
        model.compute_gradients(step, static_cast<std::uint64_t>(group.rank()) * count, count);
        updater.apply_gradients(model.gradients, model.parameters, [&](const Tree& g, const Tree& p) { optimizer->apply_gradients(g, p); });
        const std::lock_guard lock(mutex);
        if (model.hash() != steps[step].hash && (!differs || step < *differs)) differs = step;
      }
      const std::lock_guard lock(mutex);
      for (const Leaf& leaf : model.parameters)
        whole[leaf.name].assign(ShardedModel::values(leaf), ShardedModel::values(leaf) + leaf.values.count());
      for (const Leaf& leaf : state()) {
        const std::string parameter = parameter_of(leaf.name);
        whole[leaf.name].resize(layout.full_shape(parameter).count());
        std::copy_n(ShardedModel::values(leaf), leaf.values.count(), rows(parameter, whole[leaf.name]));
      }
    });
    begin = end;
  }
  return differs;
}

/// What the ranks of a test, which are threads, have committed. Throws where they do not say the same of a step.
class Chronicle {
 public:
  void note(std::uint64_t step, int ranks, std::uint64_t hash) {
    const std::lock_guard lock(mutex_);
    if (steps_.size() <= step) steps_.resize(step + 1);
    CommittedStep& noted = steps_[step];
    expect(noted.ranks == 0 || (noted.ranks == ranks && noted.hash == hash),
           [&] { return "step " + std::to_string(step) + " differs between the ranks"; });
    noted = {ranks, hash};
  }
  /// Training has gone back, once: all ranks say so before they go on, and the first one counts.
  void go_back(std::uint64_t step) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_gone_back_, true)) steps_.resize(step);
  }
  const std::vector<CommittedStep>& steps() const { return steps_; }
  bool has_gone_back() const { return has_gone_back_; }

 private:
  std::mutex mutex_;
  bool has_gone_back_ = false;
  std::vector<CommittedStep> steps_;
};

}  // namespace ringlet::test
