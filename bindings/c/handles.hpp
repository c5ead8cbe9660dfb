#pragma once

#include <ringlet/c/checkpoint.h>

#include <memory>
#include <ringlet/ringlet.hpp>

#include "bindings/c/exported_tree.hpp"

// The handles that several files of the C API use.

struct ringlet_group {
  ringlet::Group value;
};

struct ringlet_work {
  ringlet::Work value;
};

struct ringlet_optimizer {
  std::unique_ptr<ringlet::Optimizer> value;
  ringlet::c::ExportedTree state{};
};

struct ringlet_checkpoint {
  std::shared_ptr<ringlet::Checkpoint> shared;  // or a part of a trainer
  ringlet::Checkpoint& value = *shared;
};

struct ringlet_shard_layout {
  ringlet::ShardLayout value;
};
