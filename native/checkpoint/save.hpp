#pragma once

#include <functional>
#include <ringlet/checkpoint.hpp>

namespace ringlet::native {

/// The moments of a save at which it may be watched, or end.
enum class SaveMoment {
  folder_created,
  block_written,  // after each
  file_written,
  manifest_written,
  replaced_set_aside,  // on the rank that renames, where that step was there already
  renamed,             // on the rank that renames
  agreed,              // the new checkpoint counts; old ones are still there
  cleaned,
};
/// Called on the rank's own thread. What it throws counts as a failure of that moment on this rank.
using SaveHook = std::function<void(SaveMoment)>;

SaveReport save(Group& group, const std::filesystem::path& directory, const Checkpoint& checkpoint, const SaveOptions& options,
                const SaveHook& hook);

}  // namespace ringlet::native
