#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "native/checkpoint/find.hpp"
#include "native/checkpoint/folders.hpp"

namespace ringlet::native {

namespace {

[[noreturn]] void refuse_files(std::string text, int rank = -1) { throw IoError({Errc::io_error, std::move(text), rank}); }

struct Seen {
  int rank;
  const Sighting* sighting;
};
using SeenByStep = std::map<std::uint64_t, std::vector<Seen>, std::greater<>>;

SeenByStep by_step(const std::vector<std::vector<Sighting>>& ranks) {
  SeenByStep steps;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const Sighting& sighting : ranks[rank]) steps[sighting.step].push_back({static_cast<int>(rank), &sighting});
  return steps;
}

/// The ids of a step's saves, those in place first.
std::vector<std::string> ids_of(const std::vector<Seen>& seen) {
  std::set<std::pair<bool, std::string>> ids;
  for (const auto& [rank, sighting] : seen)
    if (sighting->error.empty()) ids.emplace(!sighting->in_place, sighting->id);
  std::vector<std::string> ordered;
  for (const auto& [aside, id] : ids)
    if (std::find(ordered.begin(), ordered.end(), id) == ordered.end()) ordered.push_back(id);
  return ordered;
}

/// Throws where files of a folder are missing. A folder is renamed into place with all files of its directory, so missing ones were removed
/// later.
void check_whole(const Seen& seen) {
  const auto& [rank, sighting] = seen;
  const auto is_there = [&, &files = sighting->files](int file) { return files[static_cast<std::size_t>(file)]; };
  bool any = false;
  for (const auto& directory : sighting->directories) {
    const auto missing = std::find_if_not(directory.begin(), directory.end(), is_there);
    const bool some = std::any_of(directory.begin(), directory.end(), is_there);
    any |= some;
    if (some && missing != directory.end())
      refuse_files(fmt::format("rank {}: {}/{} is missing; {}", rank, sighting->folder,
                               file_name(static_cast<std::size_t>(*missing), sighting->files.size()), kDamaged),
                   rank);
  }
  if (!any)
    refuse_files(
        fmt::format("rank {}: {} has a manifest but none of its {} files; {}", rank, sighting->folder, sighting->files.size(), kDamaged),
        rank);
}

std::vector<std::vector<int>> seers_of(const std::vector<Seen>& seen, const std::string& id) {
  std::vector<std::vector<int>> seen_by;
  for (const auto& [rank, sighting] : seen) {
    if (sighting->id != id || !sighting->error.empty()) continue;
    seen_by.resize(std::max(seen_by.size(), sighting->files.size()));
    for (std::size_t file = 0; file < sighting->files.size(); ++file)
      if (sighting->files[file] && (seen_by[file].empty() || seen_by[file].back() != rank)) seen_by[file].push_back(rank);
  }
  return seen_by;
}

}  // namespace

std::optional<Choice> choose(const std::vector<std::vector<Sighting>>& ranks, std::optional<std::uint64_t> wanted) {
  const SeenByStep steps = by_step(ranks);
  std::string incomplete;
  for (const auto& [step, seen] : steps) {
    if (wanted && step != *wanted) continue;
    for (const auto& [rank, sighting] : seen)
      if (sighting->in_place && !sighting->error.empty()) refuse_files(fmt::format("rank {}: {}", rank, sighting->error), rank);
    for (const Seen& one : seen)
      if (one.sighting->in_place) check_whole(one);
    for (const std::string& id : ids_of(seen)) {
      auto seen_by = seers_of(seen, id);
      const auto unseen = std::find_if(seen_by.begin(), seen_by.end(), [](const auto& seers) { return seers.empty(); });
      if (unseen == seen_by.end()) return Choice{step, id, std::move(seen_by)};
      if (incomplete.empty())
        incomplete = fmt::format("{}/{} is seen by no rank; start on the machines that saved it, or load an older step", step_name(step),
                                 file_name(static_cast<std::size_t>(unseen - seen_by.begin()), seen_by.size()));
    }
  }
  if (!incomplete.empty()) refuse_files(incomplete);
  if (!wanted) return std::nullopt;
  std::vector<std::uint64_t> there;
  for (const auto& [step, seen] : steps) there.push_back(step);
  refuse_files(fmt::format("there is no checkpoint of step {}; there are: {}", *wanted,
                           there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
}

}  // namespace ringlet::native
