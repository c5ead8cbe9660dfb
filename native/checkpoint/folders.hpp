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

/// The name of a step's folder, such as "step-00000120".
std::string step_name(std::uint64_t step);
/// The names of the folder to which a save with this id writes before it is renamed, and of the folder to which it moves the checkpoint
/// that it replaces.
std::string saving_name(std::uint64_t step, const std::string& id);
std::string replaced_name(std::uint64_t step, const std::string& id);

/// Lists the folders, the newest first. There are none where the directory does not exist. Throws `IoError` where it cannot be read.
std::vector<StepFolder> list_step_folders(const std::filesystem::path& directory);

/// Removes folders that interrupted saves have left, checkpoints that were set aside, and of the checkpoints up to `step` all but the
/// newest `keep`. Each is renamed before it is removed, so that it is never seen in part. Folders that cannot be removed stay until the
/// next call.
void clean(const std::filesystem::path& directory, std::uint64_t step, int keep);

}  // namespace ringlet::native
