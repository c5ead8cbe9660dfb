#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/wire.hpp>
#include <string>
#include <vector>

#include "core/plan/collective_table.hpp"

namespace ringlet::command {

/// The collectives that can be measured.
inline constexpr std::array kMeasuredCollectives{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                                                 CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::all_to_all};

/// The choices of one measurement.
struct BenchPlan {
  std::optional<int> ranks;  // that the group has to have
  CollectiveKind operation = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  std::optional<Wire> wire;            // measure averages that cross the network in this way, by all_reduce
  std::vector<std::size_t> sizes;      // in bytes
  double seconds = 0.6;                // approximate duration for each size
  std::optional<std::string> trace{};  // a file for what each rank does when
  bool json = false;
  bool encrypt = false;  // whether to compare links with and without encryption
  bool order = false;    // whether to compare additions in any order and in that of the ranks
};

/// Joins the group, measures, and prints on rank 0. Returns the exit code.
int run_bench_rank(const BenchPlan& plan);

}  // namespace ringlet::command
