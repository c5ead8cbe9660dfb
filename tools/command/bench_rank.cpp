#include "tools/command/bench_rank.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ringlet/group.hpp>
#include <string>

#include "tools/command/bench_comparison.hpp"
#include "tools/command/bench_measure.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

/// Prints the links for which this rank had a choice of paths.
void print_chosen_links(const Group& group) {
  for (const LinkInfo& link : group.link_info())
    if (link.tried > 0) {
      const std::string measured =
          link.bytes_per_second > 0
              ? fmt::format("{:.3f} ms, {:.0f} Mbit/s", std::chrono::duration<double, std::milli>(link.round_trip).count(),
                            link.bytes_per_second * 8e-6)
              : std::string("not measured");
      print_out(fmt::format("link {} - {}: {} ({}) - {} ({}), {}, {}, the best of {}\n", group.rank(), link.peer, link.own_address,
                            link.own_interface.empty() ? "?" : link.own_interface, link.peer_address,
                            link.peer_interface.empty() ? "?" : link.peer_interface, link.kind, measured, link.tried));
    }
}

std::string algorithm_of(const BenchPlan& plan, const Group& group, std::size_t bytes) {
  if (group.size() == 1) return "none";
  const std::size_t f32_bytes = plan.wire ? bytes / size_of(plan.dtype) * sizeof(float) : bytes;
  return std::string(group.algorithm(name_of(plan.operation), f32_bytes, plan.wire));
}

void print(const BenchPlan& plan, const Group& group, const LinkNames& links, const Row& row) {
  const std::string_view operation = name_of(plan.operation);
  const double algbw = static_cast<double>(row.bytes) / row.median_us / 1e3;
  const double busbw = algbw * bus_factor(plan.operation, group.size());
  const std::string algorithm = algorithm_of(plan, group, row.bytes);
  const std::string_view wire = plan.wire ? name_of(*plan.wire) : name_of(plan.dtype);
  if (plan.json) {
    print_json({{"op", operation},
                {"dtype", name_of(plan.dtype)},
                {"wire", wire},
                {"ranks", group.size()},
                {"bytes", row.bytes},
                {"median_us", row.median_us},
                {"min_us", row.min_us},
                {"p99_us", row.p99_us},
                {"algbw_GBs", algbw},
                {"busbw_GBs", busbw},
                {"algorithm", algorithm},
                {"links", links.medium},
                {"cipher", links.cipher},
                {"checked", row.checked}});
  } else {
    print_out(fmt::format("{:>10} {:>12.1f} {:>12.1f} {:>12.1f} {:>11.3f} {:>11.3f}  {:<9} {}\n", size_text(row.bytes), row.median_us,
                          row.min_us, row.p99_us, algbw, busbw, algorithm, row.checked ? "right" : "WRONG"));
  }
}

}  // namespace

int run_bench_rank(const BenchPlan& plan) {
  try {
    if (plan.encrypt) return compare_encryption(plan);
    if (plan.order) return compare_orders(plan);
    InitOptions options;
    options.trace = plan.trace;
    Group group = init(options);
    check_size(plan, group);
    const bool prints = group.rank() == 0;
    const LinkNames links = links_of(group);
    if (!plan.json) print_chosen_links(group);
    if (prints && !plan.json) {
      const std::string as_wire = plan.wire ? " as " + std::string(name_of(*plan.wire)) : "";
      print_out(fmt::format("{}, {}{}, {}, links: {}\n{:>10} {:>12} {:>12} {:>12} {:>11} {:>11}  {:<9} {}\n", name_of(plan.operation),
                            name_of(plan.dtype), as_wire, group.describe_placement(), links.text(), "bytes", "median us", "min us",
                            "p99 us", "algbw GB/s", "busbw GB/s", "algorithm", "result"));
    }
    bool right = true;
    for (const std::size_t bytes : plan.sizes) {
      const Row row = measure(group, plan, bytes);
      right = right && row.checked;
      if (prints) print(plan, group, links, row);
    }
    if (!right && prints) launch::print_error("ringlet bench: a result is wrong\n");
    return right ? 0 : 1;
  } catch (const Error& error) {
    launch::print_error("ringlet bench: {}\n", error.what());
    return error.status().code() == Errc::invalid_argument ? kUsageError : 1;
  }
}

}  // namespace ringlet::command
