#include "tools/agent/allowed_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/launch/rank_environment.hpp"

namespace ringlet::agent {

namespace {

// Their values are numbers or words from a fixed list, and decide about speed, patience and colour alone.
constexpr std::array<std::string_view, 29> kHarmless{"OMP_NUM_THREADS",
                                                     "OMP_PROC_BIND",
                                                     "MKL_NUM_THREADS",
                                                     "OPENBLAS_NUM_THREADS",
                                                     "VECLIB_MAXIMUM_THREADS",
                                                     "NUMEXPR_NUM_THREADS",
                                                     "RAYON_NUM_THREADS",
                                                     "NO_COLOR",
                                                     "PYTHONUNBUFFERED",
                                                     "RINGLET_TIMEOUT_MS",
                                                     "RINGLET_CONNECT_TIMEOUT_MS",
                                                     "RINGLET_HEARTBEAT_TIMEOUT_MS",
                                                     "RINGLET_WARN_MS",
                                                     "RINGLET_SIMD",
                                                     "RINGLET_EXCHANGE_BYTES",
                                                     "RINGLET_DIRECT_BYTES",
                                                     "RINGLET_PLACEMENT",
                                                     "RINGLET_ORDER",
                                                     "RINGLET_PARTS",
                                                     "RINGLET_PARTS_WINDOW_MS",
                                                     "RINGLET_PEER_MEMORY",
                                                     "RINGLET_INTERFACES",
                                                     "RINGLET_STATUS",
                                                     "RINGLET_ENCRYPT",
                                                     "RINGLET_CIPHER",
                                                     "RINGLET_ELASTIC",
                                                     "RINGLET_MIN_RANKS",
                                                     "RINGLET_MIN_WAIT_MS",
                                                     "RINGLET_ON_SPLIT"};

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto part_of_name = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && letter(text.front()) && std::all_of(text.begin(), text.end(), part_of_name);
}

bool is_token(std::string_view name) { return name.starts_with("RINGLET_TOKEN"); }

}  // namespace

AllowedVariables::AllowedVariables(std::vector<std::string> named) : named_(std::move(named)) {}

bool AllowedVariables::allows(std::string_view name) const {
  const auto matches = [&](std::string_view entry) {
    return entry.ends_with('*') ? name.starts_with(entry.substr(0, entry.size() - 1)) : name == entry;
  };
  return std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end() || std::any_of(named_.begin(), named_.end(), matches);
}

std::optional<std::string> AllowedVariables::find_refused(const std::vector<job::Variable>& variables) const {
  for (const job::Variable& variable : variables)
    if (!allows(variable.name))
      return fmt::format(
          "--env {0}: this variable may not be set from another machine; the machine's owner would have to start `ringlet up` with "
          "--allow-env {0}",
          variable.name);
  return std::nullopt;
}

std::optional<std::string> AllowedVariables::find_mistake() const {
  for (const std::string& entry : named_) {
    const std::string_view name = std::string_view(entry).substr(0, entry.size() - (entry.ends_with('*') ? 1 : 0));
    if (!is_name(name))
      return fmt::format("--allow-env {}: give the name of a variable, of letters, digits and _; a * at its end stands for any ending",
                         entry);
    if (is_token(name) || launch::is_reserved_variable(name))
      return fmt::format("--allow-env {}: Ringlet itself sets this variable for its ranks", entry);
  }
  return std::nullopt;
}

std::optional<std::string> find_mistake(const job::StartRanks& start) {
  constexpr std::size_t kMostArguments = 4'096, kMostVariables = 256;
  if (start.arguments.size() > kMostArguments)
    return fmt::format("{} arguments; at most {} can be given", start.arguments.size(), kMostArguments);
  if (start.environment.size() > kMostVariables)
    return fmt::format("--env: {} variables; at most {} can be given", start.environment.size(), kMostVariables);
  for (const job::Variable& variable : start.environment) {
    if (!is_name(variable.name))
      return fmt::format("--env {}={}: {} is no name of a variable: letters, digits and _ make one", variable.name, variable.value,
                         variable.name);
    if (is_token(variable.name)) return fmt::format("--env {}: each job gets a token of its own", variable.name);
  }
  return launch::find_reserved(start.environment);
}

}  // namespace ringlet::agent
