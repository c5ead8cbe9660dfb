#include "tools/launch/rank_environment.hpp"

#include <fmt/format.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "core/base/address.hpp"

extern char** environ;

namespace ringlet::launch {

namespace {

constexpr std::array<std::string_view, 23> kReserved{"RINGLET_TERMINAL_COLUMNS",
                                                     "RINGLET_RANK",
                                                     "RINGLET_WORLD_SIZE",
                                                     "RINGLET_COORDINATOR",
                                                     "RINGLET_COORDINATOR_FD",
                                                     "RINGLET_HOSTFILE",
                                                     "MLX_RANK",
                                                     "MLX_HOSTFILE",
                                                     "MLX_WORLD_SIZE",
                                                     "RINGLET_GUESTS",
                                                     "RINGLET_LISTEN",
                                                     "RINGLET_PAGE_FD",
                                                     "RINGLET_PRESENCE_FD",
                                                     "RINGLET_MEMBERSHIP_FD",
                                                     "RINGLET_RESTARTS",
                                                     "RINGLET_TRACE_FD",
                                                     "RINGLET_PAGE_SOCKET_FD",
                                                     "RANK",
                                                     "WORLD_SIZE",
                                                     "LOCAL_RANK",
                                                     "LOCAL_WORLD_SIZE",
                                                     "MASTER_ADDR",
                                                     "MASTER_PORT"};

/// What torch.distributed reads. A rank that joins others has no place in a world of torch's.
void add_for_torch(const RankStart& start, std::vector<std::string>& result) {
  const auto coordinator = parse_address(start.job.coordinator);
  if (!coordinator.ok() || !start.join.empty()) return;
  result.push_back(fmt::format("RANK={}", start.number));
  result.push_back(fmt::format("WORLD_SIZE={}", start.job.world_size));
  result.push_back(fmt::format("LOCAL_RANK={}", start.number - static_cast<int>(start.job.first_rank)));
  result.push_back(fmt::format("LOCAL_WORLD_SIZE={}", start.job.ranks));
  result.push_back("MASTER_ADDR=" + coordinator.value().host);
  result.push_back(fmt::format("MASTER_PORT={}", store_port(coordinator.value().port)));
}

/// Ranks of one machine that each take all of its cores for OpenMP's threads wait for each other most of the time.
int threads_per_rank(std::uint32_t ranks) { return std::max(1, static_cast<int>(uv_available_parallelism() / ranks)); }

std::string_view name_part(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

std::uint16_t store_port(std::uint16_t coordinator_port) {
  return static_cast<std::uint16_t>(coordinator_port < UINT16_MAX ? coordinator_port + 1 : coordinator_port - 1);
}

std::optional<job::Variable> parse_variable(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  return job::Variable{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

bool is_reserved_variable(std::string_view name) { return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end(); }

std::optional<std::string> find_reserved(const std::vector<job::Variable>& variables) {
  for (const job::Variable& variable : variables)
    if (is_reserved_variable(variable.name))
      return fmt::format("--env {}={}: Ringlet itself sets this variable for its ranks", variable.name, variable.value);
  return std::nullopt;
}

std::vector<std::string> make_rank_environment(const RankStart& start) {
  const job::StartRanks& job = start.job;
  const CrewSettings& settings = start.settings;
  const auto is_given = [&](std::string_view name) {
    return std::any_of(job.environment.begin(), job.environment.end(), [&](const job::Variable& added) { return added.name == name; });
  };
  const auto is_set = [&](const char* name) { return std::getenv(name) != nullptr || is_given(name); };
  const auto replaced = [&](std::string_view name) {
    return is_reserved_variable(name) || (name == "RINGLET_TOKEN" && !job.token.empty()) ||
           (name == "RINGLET_PORTS" && !settings.ports.any()) || (name == "RINGLET_JOIN" && !start.join.empty()) || is_given(name);
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!replaced(name_part(*entry))) result.emplace_back(*entry);
  result.push_back(fmt::format("RINGLET_RANK={}", start.number));
  result.push_back(fmt::format("RINGLET_WORLD_SIZE={}", job.world_size + static_cast<std::uint32_t>(settings.guests)));
  result.push_back(fmt::format("RINGLET_COORDINATOR={}", job.coordinator));
  add_for_torch(start, result);
  if (settings.guests > 0) {
    result.push_back(fmt::format("RINGLET_GUESTS={}", settings.guests));
    result.push_back(fmt::format("RINGLET_LISTEN={}", settings.guest_host));
  }
  if (job.elastic) result.push_back(fmt::format("RINGLET_RESTARTS={}", start.restarts));
  if (!start.join.empty()) result.push_back("RINGLET_JOIN=" + start.join);
  if (!settings.ports.any()) result.push_back("RINGLET_PORTS=" + to_string(settings.ports));
  if (!job.token.empty()) result.push_back("RINGLET_TOKEN=" + job.token);
  if (job.ranks > 1 && !is_set("OMP_NUM_THREADS")) result.push_back(fmt::format("OMP_NUM_THREADS={}", threads_per_rank(job.ranks)));
  if (job.terminal_columns > 0) result.push_back(fmt::format("RINGLET_TERMINAL_COLUMNS={}", job.terminal_columns));
  for (auto variable = job.environment.begin(); variable != job.environment.end(); ++variable) {
    const auto same = [&](const job::Variable& later) { return later.name == variable->name; };
    // The last of several settings of one name holds, as with repeated options anywhere.
    if (std::none_of(variable + 1, job.environment.end(), same)) result.push_back(variable->name + "=" + variable->value);
  }
  return result;
}

}  // namespace ringlet::launch
