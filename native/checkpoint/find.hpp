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
  std::string error;                          // why its manifest cannot be used; then the rest is empty
  std::string id;                             // of the save
  std::vector<bool> files;                    // which are there
  std::vector<std::vector<int>> directories;  // as the manifest has them
  friend bool operator==(const Sighting&, const Sighting&) = default;
};

/// The checkpoint to load.
struct Choice {
  std::uint64_t step = 0;
  std::string id;
  std::vector<std::vector<int>> seen_by;  // per file, ranks ascending; never empty
};

/// The newest step, or that of `wanted`, of which every file is seen by some rank; nothing where there is no checkpoint. A pure function of
/// what the ranks see. Throws `IoError` where a checkpoint that should be whole is not, and where `wanted` or any whole step is missing.
std::optional<Choice> choose(const std::vector<std::vector<Sighting>>& ranks, std::optional<std::uint64_t> wanted);

/// A chosen checkpoint as this rank finds it.
struct Found {
  Manifest manifest;
  std::filesystem::path folder;           // where this rank's files are; meaningless where it sees none
  std::vector<std::vector<int>> seen_by;  // as in Choice
};

/// Looks and agrees. Collective.
std::optional<Found> find(const Exchange& exchange, const std::filesystem::path& directory, std::optional<std::uint64_t> wanted);

}  // namespace ringlet::native
