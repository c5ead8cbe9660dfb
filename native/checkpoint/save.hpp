#pragma once

#include <functional>
#include <ringlet/checkpoint.hpp>

namespace ringlet::native {

/// The moments of a save at which a hook is called.
enum class SaveMoment {
  folder_created,
  block_written,  // after each block
  file_written,
  manifest_written,
  replaced_set_aside,  // on the rank that renames, where the step existed already
  renamed,             // on the rank that renames
  agreed,              // the new checkpoint is valid; old ones are still there
  cleaned,
};
/// Called on the rank's own thread. An exception counts as a failure of this rank at that moment.
using SaveHook = std::function<void(SaveMoment)>;

SaveReport save(Group& group, const std::filesystem::path& directory, const Checkpoint& checkpoint, const SaveOptions& options,
                const SaveHook& hook);

}  // namespace ringlet::native
