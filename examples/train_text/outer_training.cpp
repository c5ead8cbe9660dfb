#include "outer_training.hpp"

#include <chrono>
#include <ringlet/error.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batches.hpp"
#include "checkpoints.hpp"
#include "hashes.hpp"
#include "input_error.hpp"
#include "run.hpp"
#include "shared_inputs.hpp"

namespace train_text {
namespace {

constexpr const char* kInputs = "inputs";

/// Of the text and of all settings that a rank must share with the others.
std::uint64_t hash_of_inputs(const Options& options, const Corpus& corpus) {
  std::string text(reinterpret_cast<const char*>(corpus.text().data()), corpus.text().size());
  for (const auto& [name, value] : lasting_values(options)) text += name + '=' + value + '\n';
  return hash_of(std::as_bytes(std::span(text)));
}

}  // namespace

OuterTraining::OuterTraining(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins,
                             std::function<void(const ringlet::MembershipChange&)> on_change)
    : options_(options),
      corpus_(corpus),
      inputs_hash_(hash_of_inputs(options, corpus)),
      model_(options.shape, options.seed),
      replica_(options, model_),
      steps_(options, corpus, model_, replica_),
      on_change_(std::move(on_change)),
      trainer_((!joins && options.saves && options.guests == 0 ? check_folder(options, group) : void(), std::move(group)),
               replica_.parameters(), outer_options()) {
  trainer_.state().set(kInputs, inputs_hash_);
}

ringlet::OuterTrainerOptions OuterTraining::outer_options() {
  if (const auto tensors = replica_.parameters().size(); static_cast<std::size_t>(options_.fragments) > tensors)
    throw InputError("--fragments must be at most " + std::to_string(tensors) + ", since the model has so many tensors, not " +
                     std::to_string(options_.fragments));
  ringlet::OuterTrainerOptions outer;
  outer.inner_steps = options_.inner_steps;
  outer.fragments = options_.fragments;
  outer.overlap = options_.overlap;
  outer.by_speed = options_.shares == Shares::measured;
  outer.learning_rate = options_.outer_learning_rate;
  outer.momentum = options_.outer_momentum;
  outer.wire = options_.communication_type;
  outer.elastic.average.all_reduce_size = options_.all_reduce_size;
  outer.elastic.on_change = on_change_;
  outer.elastic.on_world = [this](ringlet::Group world) {
    if (world.guests() > 0) tell_browsers(world, options_, corpus_);
  };
  outer.elastic.on_state = [this](const ringlet::Checkpoint& state, std::uint64_t /*average*/) { require_same_inputs(state); };
  if (!options_.saves) return outer;
  outer.elastic.checkpoint = options_.checkpoint;
  outer.elastic.checkpoint_every = static_cast<std::uint64_t>(options_.checkpoint_every / steps_between_averages(options_));
  return outer;
}

void OuterTraining::require_same_inputs(const ringlet::Checkpoint& state) const {
  if (state.get<std::uint64_t>(kInputs) != inputs_hash_)
    throw InputError("the other ranks, or the checkpoint, have another text or other settings: with --inner-steps give all the same");
}

void OuterTraining::run(const std::function<void(const ringlet::InnerStep& step, double loss)>& after) {
  try {
    trainer_.run(static_cast<std::uint64_t>(options_.steps), [&](const ringlet::InnerStep& step) { return take_step(step, after); });
  } catch (const ringlet::CheckpointMismatch& error) {
    refuse_checkpoint(options_, error);
  }
  world_ = trainer_.world();
  compare_ends();
}

double OuterTraining::take_step(const ringlet::InnerStep& step, const std::function<void(const ringlet::InnerStep&, double)>& after) {
  steps_.begin(step.number, step.rank, step.ranks);
  steps_.work(Run::kAll);
  if (!steps_.problem().empty()) throw std::runtime_error(steps_.problem());
  if (steps_.share() > 0) after(step, steps_.loss());
  return steps_.share();
}

/// Ranks that are lost by now are no longer needed.
void OuterTraining::compare_ends() {
  const EndOfRank own{parameter_hash(), static_cast<std::uint64_t>(steps_.samples())};
  std::vector<EndOfRank> all;
  while (true) {
    try {
      all.assign(static_cast<std::size_t>(world_.size()), {});
      world_.all_gather(ringlet::ConstTensorView(&own, ringlet::DType::u64, kEndNumbers),
                        ringlet::TensorView(all.data(), ringlet::DType::u64, kEndNumbers * all.size()));
      break;
    } catch (const ringlet::PeerLost& error) {
      if (!world_.elastic()) throw;
      const auto noticed = std::chrono::steady_clock::now();
      const ringlet::Reformed next = world_.reform();
      world_ = next.world;
      on_change_({world_, next.lost, 0, error.status(), trainer_.averages(), std::chrono::steady_clock::now() - noticed});
    }
  }
  if (const std::string problem = different_hashes(hashes_of(all), options_.steps); !problem.empty()) throw std::runtime_error(problem);
  for (const EndOfRank& rank : all) samples_ += static_cast<double>(rank.samples);
}

double OuterTraining::validate() {
  const int windows = validation_windows(corpus_, options_.shape.context, options_.validation_windows);
  return model_.forward(validation_batch(corpus_, options_.shape.context, windows, {0, windows}), replica_);
}

}  // namespace train_text
