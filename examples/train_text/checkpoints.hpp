#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/ringlet.hpp>

#include "options.hpp"
#include "placement.hpp"

// A run that can be interrupted: parameters, optimizer state and the number of steps done, saved in shares. The names are the same in all
// modes, so a run may go on in another mode and on another number of ranks. All of this is collective.
namespace train_text {

/// Throws `ringlet::Error` where a rank cannot write; the checkpoint before is good then.
void save_training(const Options& options, std::uint64_t text_hash, Placement& placement, const ringlet::Group& group, int steps_done);

/// Loads the newest checkpoint and returns how many steps are done. Throws `InputError` where there is none, or where it is of another
/// text, shape or choice of options; `ringlet::Error` where it cannot be read.
int resume_training(const Options& options, std::uint64_t text_hash, Placement& placement, const ringlet::Group& group);

/// Throws `InputError` where the folder holds checkpoints already: those of another run, which must not be mixed with this one's.
void require_no_checkpoint(const Options& options, const ringlet::Group& group);

}  // namespace train_text
