#include "placement.hpp"

#include "data_parallel.hpp"
#include "fully_sharded.hpp"
#include "sharded_updates.hpp"
#include "training.hpp"

namespace train_text {

Placement::Placement(const Options& options) : optimizer_(make_optimizer(learning_rate_schedule(options.steps, options.learning_rate))) {
  if (options.clip_norm > 0) max_norm_ = options.clip_norm;
}

std::unique_ptr<Placement> make_placement(const Options& options, Transformer<float>& model, ringlet::Group group) {
  switch (options.mode) {
    case Mode::data_parallel:
      return std::make_unique<DataParallel>(options, model, std::move(group));
    case Mode::fsdp:
      return std::make_unique<ShardedUpdates>(options, model, std::move(group));
    case Mode::fully_shard:
      break;
  }
  return std::make_unique<FullySharded>(options, model, std::move(group));
}

}  // namespace train_text
