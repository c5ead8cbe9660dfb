#include "sharded_updates.hpp"

#include <ringlet/checkpoint.hpp>

#include "corpus.hpp"
#include "training.hpp"

namespace train_text {

ShardedUpdates::ShardedUpdates(const Settings& settings, Transformer<float>& model, ringlet::Group group)
    : ParameterStore(settings),
      memory_(model.modules()),
      parameters_(tree_of(model.modules(), memory_.values())),
      gradients_(tree_of(model.modules(), memory_.gradients())),
      layout_(parameters_, group.size()),
      updater_(group,
               {.communication_size = settings.all_reduce_size, .max_norm = max_norm_, .reduce_dtype = settings.communication_type}) {
  optimizer_.init(layout_.shard(parameters_, group.rank()));
}

void ShardedUpdates::begin_gradients(int samples, int batch, int ranks) { gradient_scale_ = share_of_mean(samples, batch, ranks); }

void ShardedUpdates::apply_gradients() {
  communication_.time([&] {
    updater_.apply_gradients(gradients_, parameters_, [&](const ringlet::Tree& gradients, const ringlet::Tree& parameters) {
      updating_.time([&] { optimizer_.apply_gradients(gradients, parameters); });
    });
  });
}

void ShardedUpdates::add_to(ringlet::Checkpoint& checkpoint) {
  checkpoint.add("parameters", parameters_).add_slots("optimizer", optimizer_.state(), layout_);
}

std::uint64_t ShardedUpdates::parameter_hash() { return hash_of(std::as_bytes(memory_.values())); }

}  // namespace train_text
