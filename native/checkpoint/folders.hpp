#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ringlet::native {

inline constexpr const char* kManifestName = "manifest.json";

/// A checkpoint's folder below a directory: where it belongs, or set aside while a new one of the same step takes its place.
struct StepFolder {
  std::uint64_t step = 0;
  bool in_place = true;
  std::string name;
};

/// "step-00000120"
std::string step_name(std::uint64_t step);
/// Where a save with this id writes before it is renamed, and where it sets aside what it replaces.
std::string saving_name(std::uint64_t step, const std::string& id);
std::string replaced_name(std::uint64_t step, const std::string& id);

/// Newest first. None where the directory does not exist; throws `IoError` where it cannot be read.
std::vector<StepFolder> list_step_folders(const std::filesystem::path& directory);

/// Removes what interrupted saves have left, what was set aside, and of the checkpoints up to `step` all but the newest `keep`. Each
/// vanishes at once. What cannot be removed stays for the next time.
void clean(const std::filesystem::path& directory, std::uint64_t step, int keep);

}  // namespace ringlet::native
