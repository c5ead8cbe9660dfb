#pragma once

#include <ringlet/tree.hpp>

#include "core/engine/options.hpp"
#include "core/engine/procedure.hpp"

namespace ringlet {

/// Scales sharded gradients in place, so that the norm over all ranks' shards is at most `max_norm`. It runs in one group.
class ClipSharded final : public Procedure {
 public:
  /// `group` and `gradients` are borrowed until the end.
  ClipSharded(const WorldOptions& group, const Tree& gradients, double max_norm)
      : group_(group), gradients_(gradients), max_norm_(max_norm) {}
  Action next() override;
  /// The norm before scaling; valid once the procedure has ended.
  double norm() const { return norm_; }

 private:
  const WorldOptions& group_;
  const Tree& gradients_;
  const double max_norm_;
  bool summed_ = false;
  double squares_ = 0;
  double norm_ = 0;
};

}  // namespace ringlet
