#pragma once

#include <optional>
#include <string>
#include <vector>

#include "native/checkpoint/exchange.hpp"
#include "native/checkpoint/manifest.hpp"

namespace ringlet::native {

/// A checkpoint's folder as one rank sees it.
struct Sighting {
  std::uint64_t step = 0;
  bool in_place = true;
  std::string folder;                         // its name
  std::string error;                          // why its manifest cannot be used; the fields below are empty then
  std::string id;                             // of the save
  std::vector<bool> files;                    // whether each file is there
  std::vector<std::vector<int>> directories;  // as the manifest has them
  friend bool operator==(const Sighting&, const Sighting&) = default;
};

/// The checkpoint to load.
struct Choice {
  std::uint64_t step = 0;
  std::string id;
  std::vector<std::vector<int>> seen_by;  // per file, ranks ascending; never empty
};

/// Chooses the newest step, or `wanted`, of which every file is seen by some rank. Returns nothing where there is no checkpoint. A pure
/// function of what the ranks see. Throws `IoError` where a checkpoint is damaged, where there is no step `wanted`, and where there are
/// steps but no rank sees some of their files.
std::optional<Choice> choose(const std::vector<std::vector<Sighting>>& ranks, std::optional<std::uint64_t> wanted);

/// A chosen checkpoint as this rank finds it.
struct Found {
  Manifest manifest;
  std::filesystem::path folder;           // where this rank finds files; undefined where it sees none
  std::vector<std::vector<int>> seen_by;  // as in Choice
};

/// Looks for checkpoints and chooses one together with the other ranks. Collective.
std::optional<Found> find(const Exchange& exchange, const std::filesystem::path& directory, std::optional<std::uint64_t> wanted);

}  // namespace ringlet::native
