#include "fully_sharded.hpp"

#include <algorithm>
#include <ringlet/checkpoint.hpp>

#include "corpus.hpp"
#include "training.hpp"

namespace train_text {

FullySharded::FullySharded(const Settings& settings, Transformer<float>& model, const ringlet::Group& group)
    : ParameterStore(settings),
      modules_(model.modules()),
      sharded_(group, [settings] { return make_optimizer(learning_rate_schedule(settings.steps, settings.learning_rate)); },
               {.copies = group.elastic() ? 2 : 1, .reduce_dtype = settings.communication_type, .max_norm = max_norm_}) {
  // Handling one module at a time avoids having all full parameters in memory at once.
  std::size_t largest = 0;
  for (const Module<float>& module : modules_) {
    std::vector<float> values(module.count());
    module.initialise(values);
    sharded_.add(module.name(), tree_of(module, values));
    largest = std::max(largest, module.count());
  }
  gradients_ = ringlet::Tensor(ringlet::DType::f32, ringlet::Shape{static_cast<std::int64_t>(largest)});
}

std::string FullySharded::set_group(const ringlet::Group& group) {
  release();
  return sharded_.enter(group);
}

void FullySharded::begin_gradients(int samples, int batch, int ranks) { gradient_scale_ = share_of_mean(samples, batch, ranks); }

void FullySharded::begin_forward(std::size_t module) {
  release();
  communication_.time([&] { use({module, sharded_.forward(module)}); });
}

void FullySharded::begin_backward(std::size_t module) {
  // The last module of the forward pass is the first of the backward pass and need not be gathered again.
  if (in_use_ && in_use_->module != module) release();
  communication_.time([&] { use({module, sharded_.backward(module)}); });
  modules_[module].lend_gradients(gradients_.values<float>().first(modules_[module].count()));
}

void FullySharded::end_backward(std::size_t module) {
  const std::span<float> gradients = gradients_.values<float>().first(modules_[module].count());
  communication_.time([&] { sharded_.reduce_gradients(module, tree_of(modules_[module], gradients)); });
  modules_[module].lend_gradients({});
}

void FullySharded::use(InUse wanted) {
  std::vector<const float*> values;
  for (const ringlet::Leaf& leaf : wanted.parameters.parameters()) values.push_back(reinterpret_cast<const float*>(leaf.values.data()));
  modules_[wanted.module].lend_values(std::move(values));
  in_use_ = std::move(wanted);
}

void FullySharded::release() {
  if (in_use_) modules_[in_use_->module].lend_values({});
  in_use_.reset();
}

void FullySharded::average() {
  release();
  sharded_.finish();
}

void FullySharded::add_to(ringlet::Checkpoint& checkpoint) { sharded_.add_to(checkpoint); }

std::uint64_t FullySharded::parameter_hash() {
  release();
  std::uint64_t hash = kHashOfNothing;
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    const ringlet::FullyShard::Unsharded full = sharded_.forward(module);
    for (const ringlet::Leaf& leaf : full.parameters()) hash = hash_of({leaf.values.data(), leaf.values.bytes()}, hash);
  }
  return hash;
}

}  // namespace train_text
