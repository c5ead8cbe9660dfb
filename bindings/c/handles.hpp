#pragma once

#include <ringlet/c/fsdp.h>

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

struct ringlet_shard_layout {
  ringlet::ShardLayout value;
};
