#include "native/elastic/trainer_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ringlet/gradients.hpp>
#include <utility>

#include "core/elastic/state_sync.hpp"
#include "core/wire/control.hpp"
#include "native/elastic/values_text.hpp"
#include "native/procedure_driver.hpp"
#include "native/residual_addends.hpp"

// What a trainer's ranks have, and how it becomes the same on all of them.
namespace ringlet {

namespace {

constexpr std::uint64_t kOnlyAtTheEnd = ~std::uint64_t{0};

std::string describe(const TrainingSettings& settings, bool of_averages) {
  std::string text =
      of_averages ? fmt::format("{} averages", settings.steps) : fmt::format("{} steps of {} samples", settings.steps, settings.batch);
  if (settings.is_sharded) text += " of sharded state";
  if (settings.saves_every == 0) return text + " without checkpoints";
  const std::string when = settings.saves_every == kOnlyAtTheEnd ? "at the end" : fmt::format("every {} steps", settings.saves_every);
  return fmt::format("{} with a checkpoint {}, of which it keeps {}", text, when, settings.keeps);
}

}  // namespace

EntryStanding ElasticTrainer::State::standing() const {
  TrainingSettings settings{.steps = plan.steps, .batch = plan.batch, .is_sharded = shards != nullptr};
  if (!options.checkpoint.empty()) {
    settings.saves_every = options.checkpoint_every == 0 ? kOnlyAtTheEnd : options.checkpoint_every;
    settings.keeps = static_cast<std::uint64_t>(options.keep);
  }
  return {is_settled, step, saved, settings};
}

/// Enters a world: its ranks tell each other what they have, and whoever lacks it gets it. A guest does the same (wasm/src/elastic.ts);
/// what it says of itself never counts.
void ElasticTrainer::State::settle() {
  entered.clear();
  if (std::exchange(is_new_world, false) && options.on_world) options.on_world(world);
  const EntryStanding mine = standing();
  using Told = std::array<std::uint64_t, 9>;
  const Told own{mine.is_settled,
                 mine.step,
                 mine.saved,
                 mine.settings.is_sharded,
                 static_cast<std::uint64_t>(min_ranks.count),
                 mine.settings.steps,
                 mine.settings.batch,
                 mine.settings.saves_every,
                 mine.settings.keeps};
  std::vector<Told> told(static_cast<std::size_t>(world.size()));
  const TensorView gathered{told.data(), DType::u64, told.size() * own.size()};
  world.all_gather(ConstTensorView(own.data(), DType::u64, own.size()), gathered, call());
  least_ranks = 1;
  for (int rank = 0; rank < world.size() - world.guests(); ++rank) {
    const auto& [settled, steps, its_saved, is_sharded, least, last, batch, saves_every, keeps] = told[static_cast<std::size_t>(rank)];
    entered.push_back({settled != 0, steps, its_saved, {last, batch, saves_every, keeps, is_sharded != 0}});
    least_ranks = std::max(least_ranks, static_cast<int>(std::min<std::uint64_t>(least, wire::kMaxRanks)));
  }
  form_natives();
  require_same_plan();
  make_states_equal();
  if (std::exchange(is_replaced, false) && options.on_state) options.on_state(checkpoint, step);
}

void ElasticTrainer::State::require_same_plan() const {
  const auto difference = compare_settings(entered);
  if (!difference) return;
  const auto text = [&](int rank) {
    return fmt::format("rank {} is to train {}", rank, describe(entered[static_cast<std::size_t>(rank)].settings, is_outer));
  };
  throw MismatchError(
      {Errc::mismatch,
       fmt::format("the ranks' plans differ: {}, and {}; give all the same", text(difference->other), text(difference->rank)),
       difference->rank});
}

void ElasticTrainer::State::make_states_equal() {
  const auto [natives_are_same, one_is_settled, saved_by_settled] = compare_standings(entered);
  std::uint64_t saved_by_all = one_is_settled ? saved_by_settled : saved;
  if (const std::string lost = shards == nullptr ? std::string() : shards->enter(world); !lost.empty()) {
    go_back(lost);
    saved_by_all = step;
  } else if (!natives_are_same || world.guests() > 0) {
    if (!one_is_settled) (void)load();
    sync();
    if (!one_is_settled) saved_by_all = step;
    is_settled = true;
  }
  saved = saved_by_all;
}

void ElasticTrainer::State::form_natives() {
  without_guests.reset();
  if (world.guests() == 0) return;
  without_guests = world.split(0, -1, call());
  if (shards == nullptr) return;
  // Guests hold no rows. They know by now that this state is sharded, and leave.
  world.barrier(call());
  world.revoke();
  throw_if_failed(shared().world_failure());
}

void ElasticTrainer::State::sync() {
  Tree tensors;
  for (const Checkpoint::Entry& entry : checkpoint.entries()) tensors.add(entry.name, entry.values);
  StateSync sync(shared().engine(), shared().agreements(), tensors, native::values_text(checkpoint), {lacks, step});
  try {
    native::ProcedureDriver({world}, options.average.stream).drive(sync);
    if (sync.takes()) checkpoint.set_values(native::parse_values(world, sync.plan().givers.front(), sync.values()));
  } catch (...) {
    lacks = lacks || sync.takes();
    throw;
  }
  lacks = false;
  step = sync.plan().step;
  if (!sync.takes()) return;
  forget_residuals();
  is_replaced = true;
}

Checkpoint ElasticTrainer::State::on_disk() {
  Checkpoint all = checkpoint;
  native::add_residuals(all, kAverageResiduals, options.average.communication_type, {{&residuals}});
  if (shards != nullptr) shards->add_to(all, "parameters", "optimizer");
  return all;
}

bool ElasticTrainer::State::load() {
  if (options.checkpoint.empty()) return false;
  Checkpoint all = on_disk();
  const auto loaded = load_checkpoint(natives(), options.checkpoint, all, {.stream = options.average.stream});
  if (!loaded) return false;
  checkpoint.set_values(all.values());
  step = *loaded;
  if (shards != nullptr) shards->loaded(step);
  lacks = false;
  is_replaced = true;
  return true;
}

/// What this rank has is not the training's state.
void ElasticTrainer::State::lose_state() {
  is_settled = false;
  lacks = true;
  forget_residuals();
  if (shards != nullptr) shards->forget();
}

/// They are of a training that this rank does not go on with.
void ElasticTrainer::State::forget_residuals() {
  residuals.clear();
  for (const auto& [name, addends] : checkpoint.addends()) addends->take({});
}

/// All holders of some rows are gone. Until the checkpoint is loaded on all ranks, none of them has a state.
void ElasticTrainer::State::go_back(const std::string& lost) {
  const std::uint64_t from = step;
  lose_state();
  if (!load())
    throw PeerLost(
        {Errc::peer_lost, fmt::format("{} are lost with all ranks that held them, and there is no checkpoint to go back to", lost)});
  is_settled = true;
  if (options.on_rollback) options.on_rollback({lost, from, step});
}

void ElasticTrainer::State::save_if_due() {
  const bool due = step == plan.steps || (options.checkpoint_every > 0 && step % options.checkpoint_every == 0);
  if (options.checkpoint.empty() || !due || saved >= step) return;
  save();
}

void ElasticTrainer::State::save() {
  save_checkpoint(natives(), options.checkpoint, on_disk(), {.step = step, .keep = options.keep, .stream = options.average.stream});
  saved = step;
}

}  // namespace ringlet
