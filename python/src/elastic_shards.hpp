#pragma once

#include <memory>
#include <ringlet/elastic_fsdp.hpp>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "held.hpp"

namespace ringlet::python {

/// A module's full parameters, as Python holds them.
struct UnshardedHandle {
  FullyShard::Unsharded unsharded;
};

/// Sharded state of an elastic group, as Python holds it.
struct ShardsHandle {
  explicit ShardsHandle(const std::shared_ptr<ElasticShards>& object, std::vector<ArrayView> views = {})
      : arrays(std::move(views)), shards(object) {}

  std::vector<ArrayView> arrays;  // of the parameters that it borrows
  Held<ElasticShards> shards;
  bool has_trainer = false;      // an ElasticTrainer drives it
  std::uint64_t generation = 0;  // grows where the memory of its rows may have been replaced
};

}  // namespace ringlet::python
