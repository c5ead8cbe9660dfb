// What an average of gradients costs among 8 to 1,024 ranks, by each algorithm and wire: the plans of all ranks on a model of their ports
// (tools/prediction/plan_cost.hpp), in virtual time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "tools/prediction/plan_cost.hpp"

using namespace ringlet;

namespace {

struct Column {
  const char* wire;
  Algorithm algorithm;
  DType dtype = DType::f32;
  std::optional<BlockFormat> blocks{};
};

const Column kColumns[] = {{"f32", Algorithm::ring},
                           {"f32", Algorithm::direct},
                           {"bf16", Algorithm::ring, DType::bf16},
                           {"bf16", Algorithm::direct, DType::bf16},
                           {"int8", Algorithm::direct, DType::f32, BlockFormat::int8},
                           {"int4", Algorithm::direct, DType::f32, BlockFormat::int4}};

struct Settings {
  std::vector<int> ranks{8, 16, 32, 64, 128, 256, 512, 1024};
  double parameters = 10e6;
  double megabytes = 117.7;
  double latency_us = 50, frame_us = 5;
  int slow_ranks = 0;
  double slow_megabytes = 0;
  bool json = false;
};

Call call_of(const Column& column, double parameters) {
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.dtype = column.dtype;
  call.algorithm = column.algorithm;
  call.blocks = column.blocks;
  const auto elements = static_cast<std::uint64_t>(parameters), block = column.blocks ? block_elements(*column.blocks) : std::uint64_t{1};
  call.rows = (elements + block - 1) / block;
  return call;
}

std::vector<PortCost> ports_of(const Settings& settings, int size) {
  const double per_byte = 1e3 / settings.megabytes;
  std::vector<PortCost> ports(static_cast<std::size_t>(size), {settings.latency_us * 1e3, per_byte, per_byte, settings.frame_us * 1e3});
  for (int i = 0; i < settings.slow_ranks && i < size; ++i) {
    PortCost& slow = ports[ports.size() - 1 - static_cast<std::size_t>(i)];
    slow.per_byte_out = slow.per_byte_in = 1e3 / settings.slow_megabytes;
  }
  return ports;
}

void print_row(const Settings& settings, int size) {
  if (!settings.json) fmt::print("{:>6} {:>6}", size, size - 1);
  for (const Column& column : kColumns) {
    const Call call = call_of(column, settings.parameters);
    const auto began = std::chrono::steady_clock::now();
    const PlanCost cost = cost_of(call, {}, ports_of(settings, size), granules_of(call, size));
    if (settings.json) {
      const nlohmann::json row{{"ranks", size},
                               {"wire", column.wire},
                               {"algorithm", name_of(column.algorithm)},
                               {"ms", cost.nanoseconds / 1e6},
                               {"frames", cost.frames},
                               {"most_bytes_out", cost.most_bytes_out},
                               {"most_scratch_bytes", cost.most_scratch},
                               {"computed_in_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()}};
      fmt::print("{}\n", row.dump());
    } else {
      fmt::print(" {:>12.1f}", cost.nanoseconds / 1e6);
    }
    std::fflush(stdout);
  }
  if (!settings.json) fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("What an average of gradients costs by each algorithm and wire, in milliseconds of a model of the ranks' ports");
  app.add_option("--ranks", settings.ranks, "Numbers of ranks, by commas")
      ->delimiter(',')
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  app.add_option("--parameters", settings.parameters, "Of the model")->check(CLI::Range(1e3, 1e9))->capture_default_str();
  app.add_option("--megabytes", settings.megabytes, "Payload that a port carries each way in a second; 117.7 is 1 Gbit/s Ethernet")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--latency", settings.latency_us, "From port to port, in microseconds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--frame", settings.frame_us, "What a frame costs each end, in microseconds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--slow", settings.slow_ranks, "How many ranks have slower ports")->check(CLI::NonNegativeNumber)->capture_default_str();
  auto* slow = app.add_option("--slow-megabytes", settings.slow_megabytes, "What those carry in a second")->check(CLI::PositiveNumber);
  app.add_flag("--json", settings.json, "One JSON object per number of ranks, wire and algorithm");
  CLI11_PARSE(app, argc, argv);
  if (settings.slow_ranks > 0 && slow->count() == 0) {
    fmt::print(stderr, "scale: --slow {} needs --slow-megabytes\n", settings.slow_ranks);
    return 2;
  }
  if (!settings.json) {
    fmt::print("{:>6} {:>6}", "ranks", "links");
    for (const Column& column : kColumns) fmt::print(" {:>12}", fmt::format("{} {}", column.wire, name_of(column.algorithm)));
    fmt::print("\n");
  }
  for (const int size : settings.ranks) print_row(settings, size);
  return 0;
}
