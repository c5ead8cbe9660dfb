#include "modes.hpp"

#include "data_parallel.hpp"
#include "fully_sharded.hpp"
#include "sharded_updates.hpp"

namespace train_text {

std::unique_ptr<ParameterStore> make_parameter_store(const Settings& settings, Transformer<float>& model, ringlet::Group group) {
  switch (settings.mode) {
    case Mode::data_parallel:
      return std::make_unique<DataParallel>(settings, model, std::move(group));
    case Mode::fsdp:
      return std::make_unique<ShardedUpdates>(settings, model, std::move(group));
    case Mode::fully_shard:
      break;
  }
  return std::make_unique<FullySharded>(settings, model, std::move(group));
}

}  // namespace train_text
