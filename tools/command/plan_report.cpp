#include "tools/command/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/plan/topology.hpp"
#include "tools/command/progress_line.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/command/table.hpp"
#include "tools/prediction/advice.hpp"

namespace ringlet::command {

namespace {

using namespace prediction;
using Json = nlohmann::ordered_json;

constexpr double kSlowerThanPorts = 1.5;
constexpr std::size_t kMostNamedLinks = 8;
// Each is a prediction of its own, which takes seconds among a thousand ranks.
constexpr std::size_t kMostSlowMachines = 8;

double mbit(double ns_per_byte) { return 8e3 / ns_per_byte; }

std::string time_text(double ns) {
  if (ns >= 1e9) return fmt::format("{:.2f} s", ns / 1e9);
  if (ns >= 100e6) return fmt::format("{:.0f} ms", ns / 1e6);
  return ns >= 1e6 ? fmt::format("{:.1f} ms", ns / 1e6) : fmt::format("{:.1f} us", ns / 1e3);
}

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

/// What follows from the question and the network.
struct PlanAnswer {
  std::vector<std::uint32_t> speeds;  // by rank
  std::vector<Prediction> predictions;
  std::optional<Advice> advice;  // where it is known how long a rank computes
  std::vector<PeerWorth> slow;   // one of each of the first slow machines, by the wire of the advice, or else the first one
  std::size_t more_slow = 0;     // machines
};

PlanAnswer work_out(const PlanQuestion& question, const PlanNetwork& network) {
  ProgressLine line("plan");
  const auto say = [&](const char* what) {
    return [&line, what](std::size_t done, std::size_t all) { line.show(fmt::format("{}, {} of {} done", what, done, all)); };
  };
  PlanAnswer result{speeds_of(network.ranks), predict(question.model, question.wires, network.ranks, say("predicting")), {}, {}};
  if (question.compute_ns) result.advice = advise(result.predictions, question.wires, *question.compute_ns);
  const WireChoice wire = result.advice ? result.advice->average.wire : question.wires.front();
  std::vector<int> slow;
  for (const int lead : leads_of(network.ranks.size(), network.ranks.machines))
    if (result.speeds[static_cast<std::size_t>(lead)] != kFullSpeed) slow.push_back(lead);
  result.more_slow = slow.size() - std::min(slow.size(), kMostSlowMachines);
  slow.resize(slow.size() - result.more_slow);
  if (!slow.empty())
    result.slow =
        worths_of(slow, best_average(result.predictions, wire), question.model, network.ranks, say("predicting without slow machines"));
  return result;
}

std::string rank_text(const PlanNetwork& network, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return network.names.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, network.names[index]);
}

/// How a program asks for this wire.
std::string wire_code(const WireChoice& wire) {
  if (!wire) return {};
  if (wire->blocks()) return fmt::format("AverageOptions::communication_type = Wire::{}({{.feedback = true}})", ringlet::name_of(*wire));
  return fmt::format("AverageOptions::communication_type = DType::{}", ringlet::name_of(*wire));
}

/// How OuterTrainer is told of this wire.
std::string outer_wire_code(const WireChoice& wire) {
  if (!wire) return {};
  return wire->blocks() ? fmt::format(", wire = Wire::{}()", ringlet::name_of(*wire))
                        : fmt::format(", wire = DType::{}", ringlet::name_of(*wire));
}

/// The time of a step that computes, and then communicates for so long.
double step_ns(const PlanQuestion& question, double communication_ns) { return *question.compute_ns + communication_ns; }

double tokens_per_second(const PlanQuestion& question, std::size_t ranks, double ns) {
  return static_cast<double>(*question.tokens * ranks) / (ns / 1e9);
}

/// How long a rank computes between two averages, as the advice is.
double ns_per_average(const PlanQuestion& question, const PlanAnswer& result) { return *question.compute_ns * result.advice->inner_steps; }

void print_table(const std::vector<Cells>& rows) {
  for (const std::string& line : aligned(rows)) print_line(line.substr(0, line.find_last_not_of(' ') + 1));
}

void print_network(const PlanNetwork& network, const PlanAnswer& result) {
  std::vector<Cells> rows{{"rank", "host", "sends Mbit/s", "receives Mbit/s", "latency", ""}};
  const auto cells_of = [&](std::size_t rank) {
    const PortCost& port = network.ranks.ports[rank];
    const double speed = static_cast<double>(result.speeds[rank]) / kFullSpeed;
    return Cells{network.names.empty() ? "-" : network.names[rank], fmt::format("{:.0f}", mbit(port.per_byte_out)),
                 fmt::format("{:.0f}", mbit(port.per_byte_in)), time_text(port.latency + port.per_frame),
                 speed < 1 ? fmt::format("slow: {:.2f} of the others", speed) : ""};
  };
  // Hundreds of ranks whose lines are given are mostly alike.
  for (std::size_t first = 0, next = 0; first < network.ranks.ports.size(); first = next) {
    Cells row = cells_of(first);
    for (next = first + 1; next < network.ranks.ports.size() && cells_of(next) == row; ++next) {
    }
    row.insert(row.begin(), next == first + 1 ? std::to_string(first) : fmt::format("{} to {}", first, next - 1));
    rows.push_back(std::move(row));
  }
  print_table(rows);
  if (!network.ranks.machines.empty())
    print_line(
        fmt::format("Ranks of one machine share its port, and move {:.1f} GB/s among themselves.", 1 / network.ranks.within.per_byte_out));
  const std::vector<MeasuredLink> slower = slower_than_ports(network.links, network.ranks.ports, kSlowerThanPorts);
  for (std::size_t i = 0; i < std::min(slower.size(), kMostNamedLinks); ++i)
    print_line(fmt::format(
        "The link of {} and {} carries {:.0f} and {:.0f} Mbit/s, less than either can do otherwise; the predictions leave that out.",
        rank_text(network, slower[i].one), rank_text(network, slower[i].other), mbit(slower[i].byte_to_other),
        mbit(slower[i].byte_to_one)));
}

void print_predictions(const PlanQuestion& question, const PlanNetwork& network, const PlanAnswer& result) {
  Cells heading{"wire", "algorithm", "bytes/parameter", "communication"};
  if (question.compute_ns) heading.insert(heading.end(), {"step", "if hidden"});
  if (question.tokens) heading.emplace_back("tokens/s");
  heading.emplace_back("setting");
  std::vector<Cells> rows{heading};
  for (const Prediction& one : result.predictions) {
    const std::string wire(prediction::name_of(one.wire, question.model));
    Cells row{one.sharded ? wire + " FSDP" : wire, std::string(ringlet::name_of(one.algorithm)),
              fmt::format("{:.2f}", one.bytes_per_parameter), time_text(one.nanoseconds)};
    if (question.compute_ns) {
      row.push_back(time_text(step_ns(question, one.nanoseconds)));
      row.push_back(time_text(std::max(*question.compute_ns, one.nanoseconds)));
    }
    if (question.tokens)
      row.push_back(fmt::format("{:.0f}", tokens_per_second(question, network.ranks.ports.size(), step_ns(question, one.nanoseconds))));
    row.emplace_back(prediction::name_of(one.setting));
    rows.push_back(std::move(row));
  }
  print_table(rows);
}

std::string taken_text(const PlanQuestion& question, const Prediction& average) {
  std::string text = fmt::format("{} by {}", prediction::name_of(average.wire, question.model), ringlet::name_of(average.algorithm));
  if (average.setting != AlgorithmSetting::none) text += fmt::format(", with {} on all ranks", prediction::name_of(average.setting));
  return text;
}

void print_advice(const PlanQuestion& question, const Advice& advice) {
  const std::string share = fmt::format("{:.0f} % of a step", 100 * advice.ns_per_step / step_ns(question, advice.ns_per_step));
  if (advice.inner_steps == 1) {
    print_line(
        fmt::format("Take {}: communication is {}, {}.", taken_text(question, advice.average), time_text(advice.ns_per_step), share));
    if (advice.average.wire) print_line("  " + wire_code(advice.average.wire));
    if (!advice.enough)
      print_line("  None of these wires takes less; begin averages during the backward pass (GradientAverager), which hides part of it.");
    return;
  }
  print_line(fmt::format(
      "Communication takes longer than computing by each of these wires. Train alone for {} steps between two averages: {} per step, {}.",
      advice.inner_steps, time_text(advice.ns_per_step), share));
  print_line(fmt::format("  OuterTrainer with inner_steps = {}{}; the average is {}", advice.inner_steps,
                         outer_wire_code(advice.average.wire), taken_text(question, advice.average)));
  print_line("  It costs loss (docs/library.md, \"Fewer averages\"), the more the more steps there are between averages.");
  if (!advice.enough)
    print_line("  Even so communication takes long beside computing: take larger batches, so that a step computes more, or faster links.");
}

void print_thresholds(const PlanQuestion& question, const PlanAnswer& result) {
  print_line(
      "Take the first of these whose time a rank computes in a step, so that communication takes a quarter of a step at most (--step-time "
      "says more):");
  for (const WireChoice& wire : question.wires) {
    const Prediction& best = best_average(result.predictions, wire);
    print_line(fmt::format("  from {}: {}", time_text(least_compute_ns(best)), taken_text(question, best)));
  }
}

void print_slow(const PlanQuestion& question, const PlanNetwork& network, const PlanAnswer& result) {
  if (result.slow.empty()) return print_line("No rank has slow links.");
  for (const PeerWorth& one : result.slow) {
    print_line(fmt::format("{} has slow links: an average takes {} with it and {} without it; it brings {:.0f} % of the computing.",
                           rank_text(network, one.rank), time_text(one.with_ns), time_text(one.without_ns), 100 * one.compute_share()));
    if (question.compute_ns) {
      const double gain = one.gain(ns_per_average(question, result));
      print_line(fmt::format("  Training is {:.2f} times as fast with it{}.", gain, gain < 1 ? ": it costs more than it brings" : ""));
    } else if (one.breaks_even > 0) {
      print_line(fmt::format("  It is worth that where a rank computes for {} or more in a step.", time_text(one.breaks_even)));
    } else {
      print_line("  It is worth that however short a step is.");
    }
  }
  if (result.more_slow > 0) print_line(fmt::format("{} more machines have slow links.", result.more_slow));
}

Json json_of(const PlanQuestion& question, std::size_t ranks, const Prediction& one) {
  Json json{{"wire", prediction::name_of(one.wire, question.model)}, {"training", one.sharded ? "fsdp" : "average"},
            {"algorithm", ringlet::name_of(one.algorithm)},          {"setting", prediction::name_of(one.setting)},
            {"bytes_per_parameter", one.bytes_per_parameter},        {"communication_ms", one.nanoseconds / 1e6},
            {"least_compute_ms", least_compute_ns(one) / 1e6}};
  if (question.compute_ns) json["step_ms"] = step_ns(question, one.nanoseconds) / 1e6;
  if (question.tokens) json["tokens_per_s"] = tokens_per_second(question, ranks, step_ns(question, one.nanoseconds));
  return json;
}

Json json_of(const PlanQuestion& question, const PlanNetwork& network, const PlanAnswer& result) {
  Json json{
      {"ranks", network.ranks.ports.size()}, {"parameters", question.model.parameters}, {"dtype", ringlet::name_of(question.model.dtype)}};
  json["measured"] = !network.links.empty();
  for (std::size_t rank = 0; rank < network.ranks.ports.size(); ++rank) {
    const PortCost& port = network.ranks.ports[rank];
    Json& entry = json["ports"].emplace_back(Json{{"rank", rank}});
    if (!network.names.empty()) entry["host"] = network.names[rank];
    if (!network.ranks.machines.empty()) entry["machine"] = network.ranks.machines[rank];
    entry.update({{"sends_mbit", mbit(port.per_byte_out)},
                  {"receives_mbit", mbit(port.per_byte_in)},
                  {"latency_us", (port.latency + port.per_frame) / 1e3},
                  {"speed", static_cast<double>(result.speeds[rank]) / kFullSpeed}});
  }
  json["links"] = Json::array();
  for (const MeasuredLink& link : network.links)
    json["links"].push_back({{"ranks", {link.one, link.other}},
                             {"exchange_us", link.exchange / 1e3},
                             {"to_higher_mbit", mbit(link.byte_to_other)},
                             {"to_lower_mbit", mbit(link.byte_to_one)},
                             {"both_ways_mbit", mbit(link.byte_both_ways)}});
  for (const Prediction& one : result.predictions) json["predictions"].push_back(json_of(question, network.ranks.ports.size(), one));
  json["take"] = nullptr;
  if (result.advice) {
    json["take"] = json_of(question, network.ranks.ports.size(), result.advice->average);
    json["take"]["inner_steps"] = result.advice->inner_steps;
    json["take"]["communication_ms_per_step"] = result.advice->ns_per_step / 1e6;
    json["take"]["enough"] = result.advice->enough;
  }
  json["more_slow_machines"] = result.more_slow;
  json["slow"] = Json::array();
  for (const PeerWorth& one : result.slow) {
    Json entry{{"rank", one.rank},
               {"speed", one.speed},
               {"with_ms", one.with_ns / 1e6},
               {"without_ms", one.without_ns / 1e6},
               {"compute_share", one.compute_share()},
               {"breaks_even_ms", one.breaks_even / 1e6}};
    if (question.compute_ns) entry["gain"] = one.gain(ns_per_average(question, result));
    json["slow"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

void report_plan(const PlanQuestion& question, const PlanNetwork& network) {
  const PlanAnswer result = work_out(question, network);
  if (question.json) return print_json(json_of(question, network, result));
  print_line(fmt::format("{} ranks, {} parameter{} in {}, links {}{}", network.ranks.ports.size(), with_commas(question.model.parameters),
                         question.model.parameters == 1 ? "" : "s", ringlet::name_of(question.model.dtype),
                         network.links.empty() ? "as given" : "as measured",
                         question.compute_ns ? fmt::format(", a rank computes for {} in a step", time_text(*question.compute_ns)) : ""));
  print_network(network, result);
  print_line("");
  print_predictions(question, network, result);
  print_line("");
  if (result.advice)
    print_advice(question, *result.advice);
  else
    print_thresholds(question, result);
  print_slow(question, network, result);
}

}  // namespace ringlet::command
