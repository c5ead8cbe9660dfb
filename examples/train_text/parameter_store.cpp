#include "parameter_store.hpp"

#include "training.hpp"

namespace train_text {

ParameterStore::ParameterStore(const Settings& settings)
    : optimizer_(make_optimizer(learning_rate_schedule(settings.steps, settings.learning_rate))) {
  if (settings.clip_norm > 0) max_norm_ = settings.clip_norm;
}

}  // namespace train_text
