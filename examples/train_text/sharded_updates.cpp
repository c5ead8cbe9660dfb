#include "sharded_updates.hpp"

#include <memory>
#include <ringlet/checkpoint.hpp>

#include "corpus.hpp"
#include "training.hpp"

namespace train_text {

ShardedUpdates::ShardedUpdates(const Settings& settings, Transformer<float>& model, const ringlet::Group& group)
    : ParameterStore(settings),
      memory_(model.modules()),
      parameters_(tree_of(model.modules(), memory_.values())),
      gradients_(tree_of(model.modules(), memory_.gradients())),
      fsdp_(group, parameters_, [settings] { return make_optimizer(learning_rate_schedule(settings.steps, settings.learning_rate)); },
            {.copies = group.elastic() ? 2 : 1,
             .communication_size = settings.all_reduce_size,
             .max_norm = max_norm_,
             .reduce_dtype = settings.communication_type}) {}

void ShardedUpdates::complete() {
  communication_.time([&] { fsdp_.gather(); });
}

void ShardedUpdates::begin_forward(std::size_t module) {
  if (module == 0) complete();
}

void ShardedUpdates::begin_gradients(int samples, int batch, int ranks) { gradient_scale_ = share_of_mean(samples, batch, ranks); }

void ShardedUpdates::average() { fsdp_.average(gradients_, 1); }

void ShardedUpdates::add_to(ringlet::Checkpoint& checkpoint) {
  complete();
  fsdp_.add_to(checkpoint);
}

std::uint64_t ShardedUpdates::parameter_hash() {
  complete();
  return hash_of(std::as_bytes(memory_.values()));
}

}  // namespace train_text
