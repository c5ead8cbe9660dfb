#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "core/base/names_text.hpp"
#include "tools/command/bench_rank.hpp"
#include "tools/command/job_trace.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_report.hpp"
#include "tools/launch/launcher.hpp"

namespace ringlet::command {

namespace {

constexpr int kUsualRanks = 2;

constexpr char kBenchFooter[] = R"(Example:
  ringlet bench --ranks 2 --op all_reduce --sizes 4,1KiB,1MiB,64MiB --dtype f32
  ringlet launch -n 4 -- ringlet bench --json

Starts its own ranks on this machine, or, inside `ringlet launch`, measures the group it was started in. Every result is checked. A
sample is a batch of calls, one after the other, in the slowest rank's time; median and min are over samples, p99 is over single calls on rank 0.
Sizes, algbw and busbw are as nccl-tests defines them: all_reduce, broadcast and reduce count the buffer, reduce_scatter and
all_to_all the whole input, all_gather the whole output; busbw = algbw x 2(n-1)/n for all_reduce, x (n-1)/n for reduce_scatter, all_gather and
all_to_all, x 1 for broadcast and reduce.
--encrypt forms two groups, one of them with encrypted links, and measures them in turns, always over TCP: what ranks of one machine move through
memory (RINGLET_PEER_MEMORY) crosses no network and is not encrypted. The ratio is encrypted time over plain time; the line above the table names the cipher.
--wire averages the buffer as gradients are (GradientAverager), rounded for the network; bytes are those of the buffer, not of the network.
--order does the same for the order in which ranks' elements are added, whatever is fastest and that of the ranks (RINGLET_ORDER), over any links.
--trace shows what each rank does when; inside `ringlet launch` it is better given there, which makes one file of all ranks' parts.
Exit codes: 0; 1 if a result is wrong or a rank is lost; 2 a mistake on the command line.)";

struct BenchCommandLine {
  std::string operation = "all_reduce";
  std::string sizes = "4,1KiB,16KiB,256KiB,1MiB,16MiB,64MiB";
  std::string dtype = "f32";
  std::string wire, trace;
  BenchPlan plan;
};

std::string measured_names(std::string_view before_last) {
  std::vector<std::string_view> names;
  for (const CollectiveKind kind : kMeasuredCollectives) names.push_back(name_of(kind));
  return names_text(names, before_last);
}

std::string wire_names(std::string_view before_last) {
  std::vector<std::string_view> names;
  for (std::size_t number = 0; number < kDTypeCount; ++number)
    if (const auto dtype = static_cast<DType>(number); is_narrow(dtype)) names.push_back(name_of(dtype));
  for (const detail::BlockFormatFacts& facts : detail::kBlockFormats) names.push_back(facts.name);
  return names_text(names, before_last);
}

void declare(CLI::App& app, BenchCommandLine& line) {
  app.footer(kBenchFooter);
  app.add_option("--ranks", line.plan.ranks, "How many ranks to start; inside `ringlet launch` it starts none")
      ->default_str(std::to_string(kUsualRanks));
  app.add_option("--op", line.operation, measured_names("or"))->capture_default_str();
  app.add_option("--sizes", line.sizes, "Bytes, with a comma between: 4, 16KiB, 1MiB, 1GiB")->capture_default_str();
  app.add_option("--dtype", line.dtype, names_of_dtypes(is_valid, "or"))->capture_default_str();
  app.add_option("--wire", line.wire, "Averages gradients instead, sent as " + wire_names("or"));
  app.add_option("--seconds", line.plan.seconds, "Time to measure each size for, about")->capture_default_str();
  auto* encrypt = app.add_flag("--encrypt", line.plan.encrypt, "What encryption of the links costs: with and without it, in turns");
  app.add_flag("--order", line.plan.order, "What adding in the order of the ranks costs: with and without it, in turns")->excludes(encrypt);
  app.add_option("--trace", line.trace, "Write what each rank does when to FILE, which opens in ui.perfetto.dev (docs/trace.md)")
      ->type_name("FILE");
  app.add_flag("--json", line.plan.json, "One line of JSON per size");
}

std::optional<std::size_t> parse_size(std::string_view text) {
  constexpr std::size_t kMax = std::size_t{1} << 40;
  std::size_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > kMax) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  for (const auto& [name, factor] :
       {std::pair<std::string_view, std::size_t>{"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}})
    if (unit == name) return number <= kMax / factor ? std::optional(number * factor) : std::nullopt;
  return std::nullopt;
}

/// Completes the plan. Returns one sentence if one of the values is not possible.
std::optional<std::string> convert(BenchCommandLine& line) {
  constexpr double kMaxSeconds = 3600;
  BenchPlan& plan = line.plan;
  if (auto mistake = check_ranks("--ranks", plan.ranks.value_or(kUsualRanks))) return mistake;
  if (!line.trace.empty()) plan.trace = line.trace;
  if (!(plan.seconds > 0 && plan.seconds <= kMaxSeconds))
    return fmt::format("--seconds {}: give a number above 0, up to {}", plan.seconds, kMaxSeconds);
  const auto dtype = find_dtype(line.dtype);
  if (!dtype) return fmt::format("--dtype {}: there is no such dtype; `ringlet bench --help` lists them", line.dtype);
  const auto operation = std::find_if(kMeasuredCollectives.begin(), kMeasuredCollectives.end(),
                                      [&](CollectiveKind kind) { return name_of(kind) == line.operation; });
  if (operation == kMeasuredCollectives.end())
    return fmt::format("--op {}: there is no such operation; {} can be measured", line.operation, measured_names("and"));
  plan.dtype = *dtype;
  plan.operation = *operation;
  if (!line.wire.empty()) {
    plan.wire = find_wire(line.wire, {.least_elements = 0});
    if (!plan.wire) return fmt::format("--wire {}: {} are possible", line.wire, wire_names("and"));
    if (plan.operation != CollectiveKind::all_reduce || !is_real(plan.dtype))
      return fmt::format("--wire {}: it is for averages, so it goes with --op all_reduce and --dtype f16, bf16, f32 or f64", line.wire);
  }
  std::istringstream sizes(line.sizes);
  for (std::string text; std::getline(sizes, text, ',');) {
    const auto bytes = parse_size(text);
    if (!bytes)
      return fmt::format("--sizes {}: '{}' is not a size of at most 1024GiB; write it as 4, 16KiB, 1MiB or 1GiB", line.sizes, text);
    if (*bytes < size_of(*dtype))
      return fmt::format("--sizes {}: '{}' is less than one element of {}, {} bytes", line.sizes, text, line.dtype, size_of(*dtype));
    plan.sizes.push_back(*bytes);
  }
  if (plan.sizes.empty()) return std::string("--sizes is empty; give at least one, such as 1MiB");
  return std::nullopt;
}

int start_ranks(const BenchCommandLine& line, int ranks, Arguments arguments) {
  std::unique_ptr<trace::PartFiles> trace_parts;
  if (const auto mistake = open_trace_parts(line.trace, trace_parts)) return usage_error("bench", *mistake);
  launch::LaunchOptions options;
  options.world_size = ranks;
  options.helper_path = launch::own_path();
  options.program = options.helper_path;
  options.job.start.arguments = {"bench"};
  options.job.start.arguments.insert(options.job.start.arguments.end(), arguments.begin(), arguments.end());
  options.job.prefix = false;
  options.job.start.trace = !line.trace.empty();
  JobTrace trace("bench", std::move(trace_parts));
  options.on_trace = trace.taker();
  const job::JobResult result = launch::launch(options);
  trace.finish(result);
  return launch::report("bench", result);
}

}  // namespace

int run_bench(Arguments arguments) {
  BenchCommandLine line;
  CLI::App app("Measures a collective between ranks, checks its results", "ringlet bench");
  declare(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;
  if (const auto mistake = convert(line)) return usage_error("bench", *mistake);
  const bool in_group = std::getenv("RINGLET_RANK") != nullptr || std::getenv("MLX_RANK") != nullptr;
  const int ranks = line.plan.ranks.value_or(kUsualRanks);
  if (!in_group && ranks > 1) return start_ranks(line, ranks, arguments);
  return run_bench_rank(line.plan);
}

}  // namespace ringlet::command
