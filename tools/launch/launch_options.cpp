#include "tools/launch/launch_options.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "tools/launch/rank_environment.hpp"

namespace ringlet::launch {

std::optional<std::string> find_mistake(const LaunchOptions& options) {
  if (const int here = options.ranks_here.value_or(options.world_size); here < 1 || here > kMaxRanks)
    return fmt::format("-n {}: the number of ranks must be from 1 to {}", here, kMaxRanks);
  if (options.guests < 0 || options.guests > kMaxGuests)
    return fmt::format("--browsers {}: the number of browsers must be from 0 to {}", options.guests, kMaxGuests);
  if (options.listen_at.port < 0 || options.listen_at.port > 65535)
    return fmt::format("--port {}: a port is from 0 to 65535", options.listen_at.port);
  if (options.command.empty() || options.command.front().empty())
    return "no program to start: put it after `--`, as in `ringlet launch -n 4 -- ./train`";
  if (options.stdin_rank && (*options.stdin_rank < 0 || *options.stdin_rank >= options.world_size))
    return fmt::format("--stdin {}: there is no such rank; with -n {} ranks go from 0 to {}", *options.stdin_rank, options.world_size,
                       options.world_size - 1);
  if (options.grace.count() < 0) return "--grace: the time must not be negative";
  if (options.linger.count() < 0) return "--linger: the time must not be negative";
  for (const auto& [name, value] : options.environment)
    if (is_reserved_variable(name)) return fmt::format("--env {}={}: the launcher itself sets this variable for its ranks", name, value);
  if (options.working_directory && !is_directory(*options.working_directory))
    return fmt::format("--cwd {}: there is no such directory", *options.working_directory);
  return std::nullopt;
}

bool is_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace ringlet::launch
