#pragma once

#include <memory>
#include <ringlet/group.hpp>

#include "parameter_store.hpp"

namespace train_text {

/// Makes a native rank's store for the chosen mode. Collective. `model` must outlive the result; `settings` are read only during the
/// call.
std::unique_ptr<ParameterStore> make_parameter_store(const Settings& settings, Transformer<float>& model, ringlet::Group group);

}  // namespace train_text
