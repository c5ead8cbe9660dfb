#pragma once

// Everything a program needs.
#include <ringlet/checkpoint.hpp>
#include <ringlet/dtype.hpp>
#include <ringlet/error.hpp>
#include <ringlet/fsdp.hpp>
#include <ringlet/gradients.hpp>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/schedules.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/status.hpp>
#include <ringlet/tensor.hpp>
#include <ringlet/tensor_parallel.hpp>
#include <ringlet/tree.hpp>

/// All that is public. `ringlet::detail` and `ringlet::native` are not.
namespace ringlet {}
