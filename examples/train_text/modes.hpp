#pragma once

#include <memory>
#include <ringlet/group.hpp>

#include "placement.hpp"

namespace train_text {

/// The placement of the chosen mode for a native rank. Collective. `model` must outlive it; `settings` are read during the call only.
std::unique_ptr<Placement> make_placement(const Settings& settings, Transformer<float>& model, ringlet::Group group);

}  // namespace train_text
