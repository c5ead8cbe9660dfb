#pragma once

#include <cstddef>
#include <optional>
#include <ringlet/dtype.hpp>
#include <string_view>
#include <vector>

namespace ringlet::command {

enum class BenchOperation { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all };

std::string_view name_of(BenchOperation operation) noexcept;
std::optional<BenchOperation> find_bench_operation(std::string_view name) noexcept;

/// What to measure.
struct BenchPlan {
  BenchOperation operation = BenchOperation::all_reduce;
  DType dtype = DType::f32;
  std::vector<std::size_t> sizes;  // bytes
  double seconds = 0.6;            // per size, about
  bool json = false;
  bool encrypt = false;  // compares links with and without
};

/// Joins the group, measures, and prints on rank 0. Returns the exit code.
int run_bench_rank(const BenchPlan& plan);

}  // namespace ringlet::command
