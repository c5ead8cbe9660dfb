#include "parameter_store.hpp"

namespace train_text {

ParameterStore::ParameterStore(const Settings& settings) {
  if (settings.clip_norm > 0) max_norm_ = settings.clip_norm;
}

}  // namespace train_text
