// What averages of gradients, and FSDP, cost among 8 to 1,024 ranks by each wire, as `ringlet plan` predicts them: the plans of all ranks
// on a model of their ports (tools/prediction/plan_cost.hpp), in virtual time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/prediction/step_prediction.hpp"

using namespace ringlet;
using prediction::Prediction;

namespace {

struct Settings {
  std::vector<int> ranks{8, 16, 32, 64, 128, 256, 512, 1024};
  double parameters = 10e6;
  double megabytes = 117.7;
  double latency_us = 50, frame_us = 5;
  int slow_ranks = 0;
  double slow_megabytes = 0;
  bool json = false;
};

std::vector<PortCost> ports_of(const Settings& settings, int size) {
  const double per_byte = 1e3 / settings.megabytes;
  std::vector<PortCost> ports(static_cast<std::size_t>(size), {settings.latency_us * 1e3, per_byte, per_byte, settings.frame_us * 1e3});
  for (int i = 0; i < settings.slow_ranks && i < size; ++i) {
    PortCost& slow = ports[ports.size() - 1 - static_cast<std::size_t>(i)];
    slow.per_byte_out = slow.per_byte_in = 1e3 / settings.slow_megabytes;
  }
  return ports;
}

/// What the ranks choose by themselves, and FSDP.
std::vector<Prediction> predictions_of(const Settings& settings, int size) {
  const prediction::StepModel model{static_cast<std::uint64_t>(settings.parameters)};
  auto all = prediction::predict(model, prediction::usual_wires(model.dtype), {ports_of(settings, size)});
  std::erase_if(all, [](const Prediction& one) { return one.setting != prediction::AlgorithmSetting::none; });
  return all;
}

std::string title_of(const Prediction& prediction) {
  return fmt::format("{}{}", prediction::name_of(prediction.wire, {}), prediction.sharded ? " FSDP" : "");
}

void print_row(const Settings& settings, int size, bool is_first) {
  const std::vector<Prediction> all = predictions_of(settings, size);
  if (!settings.json && is_first) {
    fmt::print("{:>6}", "ranks");
    for (const Prediction& one : all) fmt::print(" {:>14}", title_of(one));
    fmt::print("\n");
  }
  if (!settings.json) fmt::print("{:>6}", size);
  for (const Prediction& one : all) {
    if (settings.json) {
      const nlohmann::json row{{"ranks", size},
                               {"wire", prediction::name_of(one.wire, {})},
                               {"fsdp", one.sharded},
                               {"algorithm", name_of(one.algorithm)},
                               {"ms", one.nanoseconds / 1e6},
                               {"bytes_per_parameter", one.bytes_per_parameter}};
      fmt::print("{}\n", row.dump());
    } else {
      fmt::print(" {:>14}", fmt::format("{:.0f} {}", one.nanoseconds / 1e6, name_of(one.algorithm)));
    }
  }
  if (!settings.json) fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app(
      "What averages of f32 gradients, and FSDP, cost by each wire, in milliseconds of a model of the ranks' ports; beside it the "
      "algorithm");
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
  app.add_flag("--json", settings.json, "One JSON object per number of ranks and wire");
  CLI11_PARSE(app, argc, argv);
  if (settings.slow_ranks > 0 && slow->count() == 0) {
    fmt::print(stderr, "scale: --slow {} needs --slow-megabytes\n", settings.slow_ranks);
    return 2;
  }
  bool is_first = true;
  for (const int size : settings.ranks) print_row(settings, size, std::exchange(is_first, false));
  return 0;
}
