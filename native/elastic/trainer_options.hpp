#pragma once

#include <chrono>
#include <ringlet/elastic.hpp>

#include "native/setting.hpp"

namespace ringlet::native {

/// With fewer ranks an ElasticTrainer takes no step, and waits for others.
struct MinRanks {
  int count = 1;
  std::chrono::milliseconds wait{};
};

/// Throws `InvalidArgument` for options that do not fit, and for a tensor that is sharded.
void check_trainer(const Checkpoint& state, const ElasticTrainerOptions& options);

/// The options come first, then the variables. Throws `InvalidArgument` that names the one that is wrong.
MinRanks read_min_ranks(const ElasticTrainerOptions& options, const Variables& variables);

/// Why a training ends of which so few ranks are left, the first of the others by `lost`, which is ok where none was lost.
Status describe_lack(const MinRanks& least, int left, const Status& lost);

}  // namespace ringlet::native
