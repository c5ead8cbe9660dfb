#include "core/sharding/clip.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "core/engine/requests.hpp"
#include "core/optimizers/norm.hpp"

namespace ringlet {

Procedure::Action ClipSharded::next() {
  if (!std::exchange(summed_, true)) {
    if (Status status = check_max_norm(max_norm_); !status.ok()) return Done{std::move(status)};
    if (Status status = check_norm_dtypes(gradients_); !status.ok()) return Done{std::move(status)};
    squares_ = sum_of_squares(gradients_);
    const std::span<double> squares(&squares_, 1);
    return run(for_purpose(Purpose::shards, make_all_reduce(ReduceOp::sum, squares, squares, 1.0, group_)));
  }
  norm_ = std::sqrt(squares_);
  clip_to_norm(gradients_, norm_, max_norm_);
  return Done{};
}

}  // namespace ringlet
