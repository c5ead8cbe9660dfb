#pragma once

#include "core/engine/options.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// This rank's settings in the form in which they are sent to others.
wire::RankSettings settings_of(const WorldOptions& own);

/// Whether a rank with these settings may belong to this rank's world: `mismatch` where the two were started for different worlds,
/// `invalid_argument` where this world has no such rank.
Status check_settings(const wire::RankSettings& theirs, const WorldOptions& own);

}  // namespace ringlet
