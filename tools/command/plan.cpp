#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>

#include "core/base/names_text.hpp"
#include "tools/command/launch_hosts.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/plan_rank.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launcher.hpp"
#include "tools/prediction/network_text.hpp"

namespace ringlet::command {

namespace {

constexpr char kPlanFooter[] = R"(Example:
  ringlet plan --hosts alpha,user@beta,gamma --model 100M --step-time 0.5s
  ringlet plan --network 3x1gbit,1x250mbit --model 1.5B --dtype bf16
  ringlet launch --hosts alpha,beta -- ringlet plan --model 100M --json

Says what a step's communication will take, by each way in which gradients may cross the network, which of them to take, and what a slow
machine costs and brings. With --hosts or --hostfile it starts one rank on each host, or so many as stand behind its name, as `ringlet launch`
does (each needs `ringlet`); with -n alone so many ranks on this machine. It measures the links between all machines, pair by pair, each direction
alone and both at once. Inside `ringlet launch` or `ringlet run` it measures the group that it was started in. With --network or --links it starts
nothing, and takes the rates that they name, each that of one machine's line, of which payload gets 94 %.

A prediction is the time of the collectives that the library would run, on a model of the machines' ports. A step computes and then
communicates; "if hidden" is the step if the two overlap entirely. bytes/parameter are those that leave the busiest machine in a step. A wire is
taken where communication is a quarter of a step at most.
Exit codes: 0; 1 if a host cannot be used, or a rank is lost; 2 a mistake on the command line or in the hostfile.)";

/// The options, as they stand on the command line.
struct PlanLine {
  HostsLine hosts;
  std::optional<int> ranks;
  std::string model, dtype = "f32";
  std::optional<std::string> wires, step_time, tokens, network, links, latency, names;
  double seconds = 10;
  bool json = false;
};

void declare(CLI::App& app, PlanLine& line) {
  app.footer(kPlanFooter);
  app.add_option("--model", line.model, "How many parameters the model has: 100M, 1.5B, 124000000")->required()->type_name("COUNT");
  app.add_option("--dtype", line.dtype, "Of gradients and parameters: " + names_of_dtypes(is_real, "or"))->capture_default_str();
  app.add_option("--wire", line.wires, "Only these wires, by commas: the dtype itself, f16, bf16, int8, int4")->type_name("LIST");
  app.add_option("--step-time", line.step_time, "How long a rank computes in a step, without communication: 0.5s, 80ms")->type_name("TIME");
  app.add_option("--tokens", line.tokens, "Tokens that each rank trains on in a step; needs --step-time")->type_name("COUNT");
  app.add_option("-n,--ranks", line.ranks, "How many ranks to start on this machine; with hosts or a network: on each");
  declare_hosts_options(app, line.hosts);
  app.add_option("--network", line.network, "Rates of lines, without measuring: 4x1gbit, or 3x1gbit,1x250mbit")->type_name("LIST");
  app.add_option("--links", line.links,
                 "Rates of single ranks' lines: 0:1gbit,3:250mbit; changes --network, or else a rank not named is as the one before it")
      ->type_name("LIST");
  app.add_option("--latency", line.latency, "Of those lines, from rank to rank; 50us if not given")->type_name("TIME");
  app.add_option("--seconds", line.seconds, "How long to measure the links, about")->capture_default_str();
  app.add_option("--names", line.names, "How to call the ranks, by commas; the hosts' names if not given")->type_name("LIST");
  app.add_flag("--json", line.json, "One line of JSON");
}

/// How the ranks are called; none where the command line does not say.
std::vector<std::string> names_of(const PlanLine& line) {
  if (!line.names) return {};
  const auto names = prediction::split_at_commas(*line.names);
  return {names.begin(), names.end()};
}

std::optional<std::string> convert_wires(const PlanLine& line, PlanQuestion& question) {
  if (!line.wires) {
    question.wires = prediction::usual_wires(question.model.dtype);
    return std::nullopt;
  }
  for (const std::string_view name : prediction::split_at_commas(*line.wires)) {
    const auto wire = find_wire(name);
    if (!wire && name != line.dtype) {
      const bool is_wire = find_wire(line.dtype).has_value();
      return fmt::format("--wire {}: there is no wire '{}'; {}f16, bf16, int8 and int4 are possible", *line.wires, name,
                         is_wire ? "" : line.dtype + ", ");
    }
    const auto choice = name == line.dtype ? prediction::WireChoice{} : wire;
    if (std::find(question.wires.begin(), question.wires.end(), choice) != question.wires.end())
      return fmt::format("--wire {}: '{}' is there twice", *line.wires, name);
    question.wires.push_back(choice);
  }
  return std::nullopt;
}

/// Reads what is asked; returns one sentence if one of the values is not possible.
std::optional<std::string> convert_question(const PlanLine& line, PlanQuestion& question) {
  const auto parameters = prediction::parse_count(line.model);
  if (!parameters.ok()) return "--model " + parameters.status().text();
  question.model.parameters = parameters.value();
  const auto dtype = find_dtype(line.dtype);
  if (!dtype || !is_real(*dtype))
    return fmt::format("--dtype {}: gradients are of a real floating dtype; {} are possible", line.dtype, names_of_dtypes(is_real, "and"));
  question.model.dtype = *dtype;
  if (auto mistake = convert_wires(line, question)) return mistake;
  if (line.step_time) {
    const auto compute = prediction::parse_nanoseconds(*line.step_time);
    if (!compute.ok()) return "--step-time " + compute.status().text();
    if (compute.value() <= 0)
      return fmt::format("--step-time {}: a step that computes nothing has no share for communication; give more", *line.step_time);
    question.compute_ns = compute.value();
  }
  if (line.tokens) {
    if (!line.step_time) return fmt::format("--tokens {}: tokens per second need the time of a step; give --step-time, too", *line.tokens);
    const auto tokens = prediction::parse_count(*line.tokens);
    if (!tokens.ok()) return "--tokens " + tokens.status().text();
    question.tokens = tokens.value();
  }
  question.json = line.json;
  return std::nullopt;
}

/// Reads a network that is given in numbers.
std::optional<std::string> convert_network(const PlanLine& line, PlanNetwork& network) {
  std::vector<double> rates;
  if (line.network) {
    auto read = prediction::parse_network(*line.network);
    if (!read.ok()) return "--network " + read.status().text();
    rates = std::move(read).value();
  }
  if (line.links)
    if (const Status status = prediction::apply_links(*line.links, rates); !status.ok()) return "--links " + status.text();
  constexpr double kUsualLatencyNs = 50'000;
  const auto latency = line.latency ? prediction::parse_nanoseconds(*line.latency) : Result<double>(kUsualLatencyNs);
  if (!latency.ok()) return "--latency " + latency.status().text();
  if (auto mistake = check_ranks("-n", line.ranks.value_or(1))) return mistake;
  auto ranks = prediction::network_of_rates(rates, latency.value(), line.ranks.value_or(1));
  if (!ranks.ok()) return fmt::format("-n {}: {}", *line.ranks, ranks.status().text());
  network.ranks = std::move(ranks).value();
  return std::nullopt;
}

/// Returns a sentence if the options do not say from where the network is known, or say it twice.
std::optional<std::string> check_source(const PlanLine& line, bool in_group) {
  const bool given = line.network || line.links;
  if (given && line.hosts.used()) return "--network and --links start no ranks; leave out --hosts and --hostfile, or these two";

  if (line.latency && !given)
    return fmt::format("--latency {}: it is for --network and --links; between real ranks it is measured", *line.latency);
  if (!given && in_group && (line.hosts.used() || line.ranks))
    return "this is a rank of a group already, which is what it measures; leave out -n, --hosts and --hostfile";
  if (!given && !line.hosts.used() && !line.ranks && !in_group)
    return "no ranks: name machines with --hosts, or give a network such as --network 4x1gbit, or a number of ranks here with -n";
  return std::nullopt;
}

std::optional<std::string> check_names(const PlanLine& line, std::size_t ranks) {
  if (!line.names) return std::nullopt;
  const std::vector<std::string> names = names_of(line);
  if (std::find(names.begin(), names.end(), "") != names.end()) return fmt::format("--names '{}': a name is empty", *line.names);
  if (names.size() == ranks) return std::nullopt;
  return fmt::format("--names {}: there are {} ranks, and so many names are needed", *line.names, ranks);
}

/// The command line of a rank.
std::vector<std::string> rank_arguments(const PlanLine& line, const std::vector<std::string>& names) {
  std::vector<std::string> words{"plan", "--model", line.model, "--dtype", line.dtype, "--seconds", fmt::format("{}", line.seconds)};
  for (const auto& [name, value] :
       {std::pair{"--wire", line.wires}, {"--step-time", line.step_time}, {"--tokens", line.tokens}, {"--names", line.names}})
    if (value) words.insert(words.end(), {name, *value});
  if (!line.names && !names.empty()) words.insert(words.end(), {"--names", fmt::format("{}", fmt::join(names, ","))});
  if (line.json) words.emplace_back("--json");
  return words;
}

launch::LaunchOptions options_of(int ranks) {
  launch::LaunchOptions options;
  options.world_size = ranks;
  options.helper_path = launch::own_path();
  options.message_prefix = "ringlet plan";
  options.job.prefix = false;
  return options;
}

int run_job(const std::function<job::JobResult()>& launch) {
  LaunchLine line;
  return run_launch_line("plan", line, launch);
}

int start_here(const PlanLine& line) {
  launch::LaunchOptions options = options_of(*line.ranks);
  options.program = options.helper_path;
  options.job.start.arguments = rank_arguments(line, {});
  return run_job([&] { return launch::launch(options); });
}

int start_on_hosts(const PlanLine& line, launch::HostsPlan& plan) {
  // As launches do when they look for the deputy: `ringlet` in PATH, else where it is here.
  constexpr char kScript[] = R"(own=$1; shift; command -v ringlet >/dev/null 2>&1 && exec ringlet "$@"; exec "$own" "$@")";
  launch::LaunchOptions options = options_of(0);
  std::vector<std::string> names;
  for (const launch::Host& host : plan.hosts) {
    options.world_size += *host.slots;
    names.insert(names.end(), static_cast<std::size_t>(*host.slots), host.name());
  }

  std::vector<std::string>& arguments = options.job.start.arguments;
  options.program = line.hosts.remote_ringlet.value_or("/bin/sh");
  if (!line.hosts.remote_ringlet) arguments = {"-c", kScript, "sh", options.helper_path};
  for (std::string& word : rank_arguments(line, names)) arguments.push_back(std::move(word));
  options.job.every_machine = true;
  plan.environment = shared_variables();
  return run_job([&] { return launch::launch_on(plan, options); });
}

/// Checks what is to be started, and starts it.
int start_ranks(const PlanLine& line) {
  launch::HostsPlan plan;
  if (const auto mistake = convert_hosts_line(line.hosts, line.ranks, plan)) return usage_error("plan", *mistake);
  int ranks = line.hosts.used() ? 0 : *line.ranks;
  for (const launch::Host& host : plan.hosts) ranks += *host.slots;
  if (!line.hosts.used())
    if (const auto mistake = check_ranks("-n", ranks)) return usage_error("plan", *mistake);
  if (ranks < 2) return usage_error("plan", "one rank has nobody to talk to; give two or more");
  if (const auto mistake = check_names(line, static_cast<std::size_t>(ranks))) return usage_error("plan", *mistake);
  return line.hosts.used() ? start_on_hosts(line, plan) : start_here(line);
}

}  // namespace

int run_plan(Arguments arguments) {
  constexpr double kMostSeconds = 3600;
  PlanLine line;
  CLI::App app("Predicts what a step's communication takes, and says which way to take", "ringlet plan");
  declare(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;
  PlanQuestion question;
  PlanNetwork network;
  const bool in_group = std::getenv("RINGLET_RANK") != nullptr || std::getenv("MLX_RANK") != nullptr;
  if (const auto mistake = convert_question(line, question)) return usage_error("plan", *mistake);
  if (const auto mistake = check_source(line, in_group)) return usage_error("plan", *mistake);
  if (!(line.seconds > 0 && line.seconds <= kMostSeconds))
    return usage_error("plan", fmt::format("--seconds {}: give a number above 0, up to {}", line.seconds, kMostSeconds));
  if (line.network || line.links) {
    if (const auto mistake = convert_network(line, network)) return usage_error("plan", *mistake);
    if (const auto mistake = check_names(line, network.ranks.ports.size())) return usage_error("plan", *mistake);
    network.names = names_of(line);
    report_plan(question, network);
    return 0;
  }
  if (!in_group) return start_ranks(line);
  return run_plan_rank(question, line.seconds, names_of(line));
}

}  // namespace ringlet::command
