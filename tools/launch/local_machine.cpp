#include "tools/launch/local_machine.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <sstream>

#include "tools/launch/local_crew.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::launch {

bool is_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

LocalMachine::LocalMachine(UvLoop& loop, CrewSettings settings) : loop_(loop), settings_(std::move(settings)) {}

job::Offer LocalMachine::offer(const job::Hail& hail, const LinkBinding&) {
  job::Offer offer;
  offer.protocol = job::kProtocol;
  offer.free_ranks = job::kMaxRanksPerMachine;
  if (const char* connection = std::getenv("SSH_CONNECTION")) {
    std::string port;
    std::istringstream(connection) >> offer.launcher_address >> port >> offer.own_address;
  }
  if (!hail.directory.empty() && !is_directory(hail.directory)) {
    offer.refusal = fmt::format("--cwd {}: there is no such directory", hail.directory);
    offer.refusal_code = 2;
  }
  return offer;
}

std::optional<job::Failed> LocalMachine::admit(job::StartRanks& start, const job::Hail&) {
  if (start.directory.empty() && is_directory(start.preferred_directory)) start.directory = start.preferred_directory;
  if (auto mistake = find_reserved(start.environment)) return job::Failed{2, std::move(*mistake)};
  return std::nullopt;
}

std::unique_ptr<job::RankCrew> LocalMachine::make_crew(job::CrewEvents events) {
  return std::make_unique<LocalCrew>(loop_, settings_, std::move(events));
}

}  // namespace ringlet::launch
