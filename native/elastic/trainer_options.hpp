#pragma once

#include <ringlet/elastic.hpp>

namespace ringlet::native {

/// Throws `InvalidArgument` for options that do not fit, for a tensor that is sharded, and for names that the trainer itself gives.
void check_trainer(const Checkpoint& state, const ElasticTrainerOptions& options);

/// Why a training ends of which so few ranks are left, the first of the others by `lost`, which is ok where none was lost.
Status describe_lack(const MinRanks& least, int left, const Status& lost);

}  // namespace ringlet::native
