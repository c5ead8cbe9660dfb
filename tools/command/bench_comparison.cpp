#include "tools/command/bench_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/command/bench_measure.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

constexpr int kTurns = 5;

/// One of the two groups: the name of its column, that of its time in JSON, and how it is formed.
struct Side {
  std::string_view column;
  std::string_view key;
  InitOptions options;
};

/// The times of one of the two groups for a size, one for each turn.
struct Times {
  std::vector<double> medians;
  bool checked = true;

  void add(const Row& row) {
    medians.push_back(row.median_us);
    checked = checked && row.checked;
  }
  double median() const {
    std::vector<double> sorted = medians;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void print(const BenchPlan& plan, const std::array<Side, 2>& sides, int ranks, const LinkNames& links, std::size_t bytes,
           const std::array<Times, 2>& times) {
  const std::array<double, 2> medians{times[0].median(), times[1].median()};
  const bool checked = times[0].checked && times[1].checked;
  const auto busbw = [&](double us) { return static_cast<double>(bytes) / us / 1e3 * bus_factor(plan.operation, ranks); };
  if (plan.json) {
    print_json({{"op", name_of(plan.operation)},
                {"dtype", name_of(plan.dtype)},
                {"ranks", ranks},
                {"bytes", bytes},
                {fmt::format("{}_us", sides[0].key), medians[0]},
                {fmt::format("{}_us", sides[1].key), medians[1]},
                {fmt::format("{}_busbw_GBs", sides[0].key), busbw(medians[0])},
                {fmt::format("{}_busbw_GBs", sides[1].key), busbw(medians[1])},
                {"ratio", medians[1] / medians[0]},
                {"links", links.medium},
                {"cipher", links.cipher},
                {"checked", checked}});
  } else {
    print_out(fmt::format("{:>10} {:>12.1f} {:>12.1f} {:>12.3f} {:>12.3f} {:>8.2f}  {}\n", size_text(bytes), medians[0], medians[1],
                          busbw(medians[0]), busbw(medians[1]), medians[1] / medians[0], checked ? "right" : "WRONG"));
  }
}

int compare(const BenchPlan& plan, std::array<Side, 2> sides) {
  for (Side& side : sides) side.options.trace = plan.trace;
  Group first = init(sides[0].options);
  check_size(plan, first);
  // Both groups meet at the same address, so no rank may start the second meeting while another still waits in the first.
  first.barrier();
  Group second = init(sides[1].options);
  const std::array<Group*, 2> groups{&first, &second};
  const bool prints = first.rank() == 0;
  // The first of the two groups may have links without encryption.
  const LinkNames links = links_of(second);
  if (prints && !plan.json) {
    const auto column = [&](std::size_t side, std::string_view unit) { return fmt::format("{} {}", sides[side].column, unit); };
    print_out(fmt::format("{}, {}, {} ranks, links: {}\n{:>10} {:>12} {:>12} {:>12} {:>12} {:>8}  {}\n", name_of(plan.operation),
                          name_of(plan.dtype), first.size(), links.text(), "bytes", column(0, "us"), column(1, "us"), column(0, "GB/s"),
                          column(1, "GB/s"), "ratio", "result"));
  }
  BenchPlan turn = plan;
  turn.seconds = plan.seconds / kTurns / 2;
  bool right = true;
  for (const std::size_t bytes : plan.sizes) {
    std::array<Times, 2> times;
    std::size_t measured = bytes;
    for (int i = 0; i < kTurns; ++i) {
      for (std::size_t one = 0; one < groups.size(); ++one) {
        const Row row = measure(*groups[one], turn, bytes);
        times[one].add(row);
        measured = row.bytes;
      }
    }
    right = right && times[0].checked && times[1].checked;
    if (prints) print(plan, sides, first.size(), links, measured, times);
  }
  if (!right && prints) launch::print_error("ringlet bench: a result is wrong\n");
  return right ? 0 : 1;
}

}  // namespace

int compare_encryption(const BenchPlan& plan) {
  InitOptions plain, encrypted;
  plain.peer_memory = encrypted.peer_memory = false;
  plain.encrypt = false;
  encrypted.encrypt = true;
  return compare(plan, {Side{"plain", "plain", plain}, Side{"encr.", "encrypted", encrypted}});
}

int compare_orders(const BenchPlan& plan) {
  InitOptions any, rank;
  any.order = ReduceOrder::any;
  rank.order = ReduceOrder::rank;
  return compare(plan, {Side{"any", "any_order", any}, Side{"rank", "rank_order", rank}});
}

}  // namespace ringlet::command
