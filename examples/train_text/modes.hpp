#pragma once

#include <memory>
#include <ringlet/group.hpp>

#include "placement.hpp"

namespace train_text {

/// Makes a native rank's placement for the chosen mode. Collective. `model` must outlive the result; `settings` are read only during the
/// call.
std::unique_ptr<Placement> make_placement(const Settings& settings, Transformer<float>& model, ringlet::Group group);

}  // namespace train_text
