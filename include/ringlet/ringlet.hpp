#pragma once

#include <ringlet/detail/language.hpp>

// Includes everything that a program needs. An older compiler stops at the error above instead of adding errors from each header.
#if __cplusplus >= 202002L
#include <ringlet/checkpoint.hpp>
#include <ringlet/dtype.hpp>
#include <ringlet/elastic.hpp>
#include <ringlet/elastic_fsdp.hpp>
#include <ringlet/error.hpp>
#include <ringlet/fsdp.hpp>
#include <ringlet/gradients.hpp>
#include <ringlet/group.hpp>
#include <ringlet/optimizers.hpp>
#include <ringlet/outer.hpp>
#include <ringlet/schedules.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/status.hpp>
#include <ringlet/tensor.hpp>
#include <ringlet/tensor_parallel.hpp>
#include <ringlet/trace.hpp>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#endif

/// The public interface. `ringlet::detail` and `ringlet::native` are not public.
namespace ringlet {}
