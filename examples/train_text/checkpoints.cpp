#include "checkpoints.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input_error.hpp"

namespace train_text {
namespace {

std::vector<std::pair<std::string, std::string>> settings_of(const Options& options, std::uint64_t text_hash) {
  auto settings = lasting_values(options);
  settings.emplace_back("text-hash", fmt::format("{:016x}", text_hash));
  return settings;
}

void check_settings(const Options& options, std::uint64_t text_hash, const ringlet::Checkpoint& saved, std::uint64_t step) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(
        fmt::format("the checkpoint of step {} in {} was saved {}: resume with what it was saved with, or start anew in another "
                    "folder",
                    step, options.checkpoint.string(), what));
  };
  for (const auto& [name, value] : settings_of(options, text_hash)) {
    const auto& before = saved.get<std::string>(name);
    if (before == value) continue;
    refuse(name == "text-hash" ? fmt::format("from another text (hash {}, not {})", before, value)
                               : fmt::format("with --{} {}, not {}", name, before, value));
  }
}

struct Cause {
  const char* was;
  const char* advice;
};

/// The parameters are compared first, so where another tensor differs they are those of the same model.
Cause cause_of(const ringlet::CheckpointMismatch& error) {
  using Kind = ringlet::CheckpointMismatch::Kind;
  const bool is_saved = error.kind() == Kind::not_loaded;
  if (error.kind() != Kind::other_type && error.tensor().starts_with("optimizer."))
    return is_saved ? Cause{"was saved without --inner-steps", "resume without it"}
                    : Cause{"was saved with --inner-steps", "resume with it"};
  if (error.kind() != Kind::other_type && error.tensor().starts_with("outer_optimizer."))
    return is_saved ? Cause{"was saved with another --outer-momentum than 0", "resume with that"}
                    : Cause{"was saved without --inner-steps, or with --outer-momentum 0", "resume as it was saved"};
  return {"is of another model", "resume with the --layers, --width and --context that it was saved with"};
}

[[noreturn]] void refuse_empty_folder(const Options& options) {
  throw InputError(
      fmt::format("there is no checkpoint in {} to resume from: name another folder with --checkpoint, or start without --resume",
                  options.checkpoint.string()));
}

}  // namespace

void save_training(const Options& options, std::uint64_t text_hash, ParameterStore& store, const ringlet::Group& group, int steps_done) {
  ringlet::Checkpoint checkpoint;
  store.add_to(checkpoint);
  for (auto& [name, value] : settings_of(options, text_hash)) checkpoint.set(name, value);
  ringlet::save_checkpoint(group, options.checkpoint, checkpoint, {.step = static_cast<std::uint64_t>(steps_done)});
}

bool was_restarted() {
  const char* restarts = std::getenv("RINGLET_RESTARTS");
  return restarts != nullptr && std::string_view(restarts) != "0";
}

Arrival arrival_of(bool joins) {
  if (!joins) return Arrival::first;
  return was_restarted() ? Arrival::again : Arrival::later;
}

int resume_training(const Options& options, std::uint64_t text_hash, ParameterStore& store, const ringlet::Group& group) {
  ringlet::Checkpoint checkpoint;
  store.add_to(checkpoint);
  std::optional<std::uint64_t> step;
  try {
    step = ringlet::load_checkpoint(group, options.checkpoint, checkpoint);
  } catch (const ringlet::CheckpointMismatch& error) {
    refuse_checkpoint(options, error);
  }
  if (!step && was_restarted()) return 0;
  if (!step) refuse_empty_folder(options);
  check_settings(options, text_hash, checkpoint, *step);
  store.loaded(*step);
  return static_cast<int>(*step);
}

void refuse_checkpoint(const Options& options, const ringlet::CheckpointMismatch& error) {
  const auto [was, advice] = cause_of(error);
  throw InputError(fmt::format("the checkpoint in {} {} ({}): {}, or start anew in another folder", options.checkpoint.string(), was,
                               error.what(), advice));
}

void require_no_checkpoint(const Options& options, const ringlet::Group& group) {
  // With --inner-steps the number is one of averages, so the folder's name alone is right for all.
  if (const auto number = ringlet::latest_checkpoint(group, options.checkpoint)) {
    throw InputError(fmt::format("{} holds a checkpoint already, step-{:08}: go on from it with --resume, or name another folder",
                                 options.checkpoint.string(), *number));
  }
}

void check_folder(const Options& options, const ringlet::Group& group) {
  if (!options.resume) return require_no_checkpoint(options, group);
  if (!ringlet::latest_checkpoint(group, options.checkpoint) && !was_restarted()) refuse_empty_folder(options);
}

}  // namespace train_text
