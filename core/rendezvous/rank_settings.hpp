#pragma once

#include "core/engine/options.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// What this rank tells others of how it was started.
wire::RankSettings settings_of(const WorldOptions& own);

/// Whether a rank with these settings may belong to this rank's world: `mismatch` where the two were started for different worlds,
/// `invalid_argument` where there is no such rank.
Status check_settings(const wire::RankSettings& theirs, const WorldOptions& own);

}  // namespace ringlet
