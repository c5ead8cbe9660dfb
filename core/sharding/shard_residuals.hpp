#pragma once

#include "core/gradients/residuals.hpp"

namespace ringlet {

/// What rounding to blocks has left out when gradients were reduced into shards. Each rank has sent all rows, so these are of full tensors.
struct ShardResiduals {
  Residuals gradients;  // by the tensor's place in the tree of full gradients
  Residuals sums;       // by bucket: of a shard's sum, which is averaged with those of its replicas

  void begin() {
    gradients.begin();
    sums.begin();
  }
  void commit() {
    gradients.commit();
    sums.commit();
  }
  void clear() {
    gradients.clear();
    sums.clear();
  }
};

}  // namespace ringlet
