#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/prediction/measured_links.hpp"
#include "tools/prediction/step_prediction.hpp"

namespace ringlet::command {

/// The question that `ringlet plan` answers.
struct PlanQuestion {
  prediction::StepModel model;
  std::vector<prediction::WireChoice> wires;
  std::optional<double> compute_ns;     // of a rank in a step
  std::optional<std::uint64_t> tokens;  // of a rank in a step
  bool json = false;
};

/// The ranks' network, as measured or as given.
struct PlanNetwork {
  prediction::RankNetwork ranks;
  std::vector<std::string> names;               // of the ranks; empty: not known
  std::vector<prediction::MeasuredLink> links;  // between machines; empty: nothing was measured
};

/// Predicts, and prints the answer.
void report_plan(const PlanQuestion& question, const PlanNetwork& network);

}  // namespace ringlet::command
