#include "native/checkpoint/find.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "native/checkpoint/file.hpp"
#include "native/checkpoint/folders.hpp"

namespace ringlet::native {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSightings = "a list of checkpoints";

/// What this rank sees: its sightings, and the text of the manifest of each.
struct Look {
  std::vector<Sighting> sightings;
  std::vector<std::string> manifests;
};

Sighting look_at(const fs::path& directory, const StepFolder& folder, std::string& text) {
  Sighting sighting{folder.step, folder.in_place, folder.name, {}, {}, {}, {}};
  const fs::path path = directory / folder.name / kManifestName;
  const Status status = attempt([&] {
    text = read_file(path, kMaxManifestBytes);
    Manifest manifest;
    const Status sound = attempt([&] { manifest = parse_manifest(text); });
    if (!sound.ok()) throw_io_error(path, sound.text());
    if (manifest.step != folder.step) throw_io_error(path, fmt::format("it is of step {}, not of its folder's", manifest.step));
    sighting.id = manifest.id;
    sighting.directories = manifest.directories;
    for (std::size_t file = 0; file < manifest.files.size(); ++file) {
      std::error_code ignored;
      sighting.files.push_back(fs::exists(directory / folder.name / file_name(file, manifest.files.size()), ignored));
    }
  });
  if (!status.ok()) sighting.error = status.text();
  return sighting;
}

Look look(const fs::path& directory, std::optional<std::uint64_t> wanted) {
  Look seen;
  for (const StepFolder& folder : list_step_folders(directory)) {
    std::string text;
    // Of other steps than the wanted one only the number is of use, where that is not there.
    if (wanted && folder.step != *wanted)
      seen.sightings.push_back({folder.step, folder.in_place, folder.name, {}, {}, {}, {}});
    else
      seen.sightings.push_back(look_at(directory, folder, text));
    seen.manifests.push_back(std::move(text));
  }
  return seen;
}

std::string to_text(const std::vector<Sighting>& sightings) {
  json list = json::array();
  for (const Sighting& s : sightings) list.push_back({s.step, s.in_place, s.folder, s.error, s.id, s.files, s.directories});
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<Sighting> parse_sightings(const std::string& text) {
  std::vector<Sighting> sightings;
  for (const json& s : json::parse(text))
    sightings.push_back({s.at(0).get<std::uint64_t>(), s.at(1).get<bool>(), s.at(2).get<std::string>(), s.at(3).get<std::string>(),
                         s.at(4).get<std::string>(), s.at(5).get<std::vector<bool>>(), s.at(6).get<std::vector<std::vector<int>>>()});
  for (const Sighting& s : sightings)
    for (const auto& directory : s.directories)
      for (const int file : directory)
        if (file < 0 || static_cast<std::size_t>(file) >= s.files.size())
          throw std::out_of_range(fmt::format("a directory has file {} of {}", file, s.files.size()));
  return sightings;
}

}  // namespace

std::optional<Found> find(const Exchange& exchange, const fs::path& directory, std::optional<std::uint64_t> wanted) {
  Look mine;
  exchange.require_ok(attempt([&] { mine = look(directory, wanted); }));
  std::vector<std::vector<Sighting>> all;
  const Group& group = exchange.group();
  for (const std::string& text : exchange.gather(to_text(mine.sightings)))
    all.push_back(read_from(group, static_cast<int>(all.size()), kSightings, [&] { return parse_sightings(text); }));
  const auto choice = choose(all, wanted);
  if (!choice) return std::nullopt;
  const auto is_chosen = [&](const Sighting& s) { return s.step == choice->step && s.id == choice->id && s.error.empty(); };
  const auto mine_at = std::find_if(mine.sightings.begin(), mine.sightings.end(), is_chosen);
  const auto holder = std::find_if(all.begin(), all.end(),
                                   [&](const auto& sightings) { return std::any_of(sightings.begin(), sightings.end(), is_chosen); });
  const bool have = mine_at != mine.sightings.end();
  const auto root = static_cast<int>(holder - all.begin());
  const std::string text = exchange.broadcast(have ? mine.manifests[static_cast<std::size_t>(mine_at - mine.sightings.begin())] : "", root);
  Manifest manifest = read_from(group, root, "a manifest", [&] { return parse_manifest(text); });
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (const Sighting& s : all[rank])
      if (is_chosen(s) && s.files.size() != manifest.files.size())
        refuse_from(group, static_cast<int>(rank), kSightings,
                    fmt::format("{} has {} files, where its manifest has {}", s.folder, s.files.size(), manifest.files.size()));
  return Found{std::move(manifest), have ? directory / mine_at->folder : fs::path(), choice->seen_by};
}

}  // namespace ringlet::native
