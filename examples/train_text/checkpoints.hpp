#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/ringlet.hpp>

#include "log_file.hpp"
#include "options.hpp"
#include "parameter_store.hpp"

// Checkpoints let a run be interrupted and resumed. They hold the parameters, the optimizer's state and the number of steps done, saved in
// shards. Their names are the same in all modes, so a run may continue in another mode and on another number of ranks; those of a run with
// inner_steps have an outer optimizer's state instead, and count averages. All functions that take a group are collective.
namespace train_text {

/// Whether `ringlet launch --elastic` has started this process again. The run then goes on from its newest checkpoint without --resume.
bool was_restarted();

/// `joins`: whether the others trained already.
Arrival arrival_of(bool joins);

/// Throws `ringlet::Error` if a rank cannot write. The previous checkpoint stays valid then.
void save_training(const Options& options, std::uint64_t text_hash, ParameterStore& store, const ringlet::Group& group, int steps_done);

/// Loads the newest checkpoint and returns how many steps are done. Throws `InputError` if there is none, or if it was made with another
/// text, model shape or options, and `ringlet::Error` if it cannot be read. Where this process was started again the run may have been lost
/// before its first checkpoint, so it returns 0 if there is none.
int resume_training(const Options& options, std::uint64_t text_hash, ParameterStore& store, const ringlet::Group& group);

/// Throws `InputError` that says how the checkpoint was saved, by the error of loading it otherwise, and what to do.
[[noreturn]] void refuse_checkpoint(const Options& options, const ringlet::CheckpointMismatch& error);

/// Throws `InputError` if the folder already holds checkpoints, since those of two runs must not be mixed.
void require_no_checkpoint(const Options& options, const ringlet::Group& group);

/// The same, and with `resume` throws `InputError` if there is none, unless this process was started again: then it may begin anew.
void check_folder(const Options& options, const ringlet::Group& group);

}  // namespace train_text
