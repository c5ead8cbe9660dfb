#include <fmt/format.h>

#include <array>
#include <chrono>
#include <optional>
#include <ringlet/elastic.hpp>
#include <ringlet/gradients.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/refuse.hpp"
#include "core/elastic/hand_over.hpp"
#include "core/elastic/signals.hpp"
#include "core/elastic/state_sync.hpp"
#include "core/plan/part_layout.hpp"
#include "native/agreement.hpp"
#include "native/elastic/elastic_shards.hpp"
#include "native/elastic/trainer_options.hpp"
#include "native/elastic/values_text.hpp"
#include "native/elastic/world_averages.hpp"
#include "native/procedure_driver.hpp"
#include "native/residual_addends.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

// How often ranks that wait for others look whether somebody has come.
constexpr std::chrono::milliseconds kWaitInterval{20};

/// Whether those who are left can go on after it.
bool is_a_loss(const Status& status) { return status.code() == Errc::peer_lost || status.code() == Errc::cancelled; }

}  // namespace

struct ElasticTrainer::State {
  using Clock = std::chrono::steady_clock;
  State(Group group, Checkpoint contents, ElasticShards::State* held, ElasticTrainerOptions o)
      : world(std::move(group)),
        checkpoint(std::move(contents)),
        shards(held),
        options(std::move(o)),
        min_ranks(read_min_ranks(options)),
        lacks(shared().has_joined()) {}

  native::SharedGroup& shared() const { return world.shared(); }
  /// The ranks that have files.
  Group& natives() { return without_guests ? *without_guests : world; }
  CallOptions call() const { return {.stream = options.average.stream}; }
  void settle();
  void form_natives();
  void sync();
  bool load();
  void go_back(const std::string& lost);
  Checkpoint on_disk();
  void lose_state();
  void forget_residuals();
  void attempt(ElasticTrainer& trainer, const TrainingPlan& plan, const std::function<void(Step&)>& step_function);
  void save_if_due(const TrainingPlan& plan);
  void save();
  bool is_short() const { return shared().elastic() && world.size() - world.guests() < min_ranks.count; }
  void await_min_ranks();
  void vote();
  void grow();
  bool goes_on_after(const Error& error) const;
  void let_guest_go(const Error& error);
  void recover();
  void rejoin(const PeerLost& lost);

  Group world;
  Checkpoint checkpoint;
  ElasticShards::State* const shards;  // null: all state is whole
  const ElasticTrainerOptions options;
  const MinRanks min_ranks;
  std::uint64_t step = 0;
  int interruptions = 0;      // before run()
  std::uint64_t saved = 0;    // the step of the newest checkpoint that all ranks know of, or at which the training began
  bool is_new_world = false;  // on_world has not run in it
  bool is_settled = false;    // once all ranks had the same state
  bool lacks;                 // this rank's state is not whole
  bool is_applying = false;   // stays so where the program's function has thrown
  bool is_replaced = false;   // since on_state ran last
  Residuals residuals;        // of this rank's gradients, as of the last committed step
  std::unique_ptr<native::WorldAverages> averages;
  std::optional<Group> without_guests;
  Signals signals;  // the least of all ranks, at the last vote
  Status lost_last;
  std::optional<Clock::time_point> waits_until;  // while there are fewer than min_ranks
};

/// Makes the ranks' states equal, if they may differ. A guest does the same (wasm/src/elastic.ts); what it says of itself never counts.
void ElasticTrainer::State::settle() {
  if (std::exchange(is_new_world, false) && options.on_world) options.on_world(world);
  using Told = std::array<std::uint64_t, 5>;
  const Told own{is_settled, step, saved, shards != nullptr, static_cast<std::uint64_t>(min_ranks.count)};
  std::vector<Told> told(static_cast<std::size_t>(world.size()));
  const TensorView gathered{told.data(), DType::u64, told.size() * own.size()};
  world.all_gather(ConstTensorView(own.data(), DType::u64, own.size()), gathered, call());
  form_natives();
  std::vector<EntryStanding> all;
  for (int rank = 0; rank < world.size() - world.guests(); ++rank) {
    const auto& [settled, steps, its_saved, is_sharded, least] = told[static_cast<std::size_t>(rank)];
    all.push_back({settled != 0, steps, its_saved});
  }
  const auto [natives_are_same, one_is_settled, saved_by_settled] = compare_standings(all);
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
  if (std::exchange(is_replaced, false) && options.on_state) options.on_state(checkpoint, step);
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

void ElasticTrainer::State::attempt(ElasticTrainer& trainer, const TrainingPlan& plan, const std::function<void(Step&)>& step_function) {
  const ElementRange samples = rows_of(plan.batch, world.size(), world.rank());
  try {
    if (!averages) averages = std::make_unique<native::WorldAverages>(world, options.average, residuals);
    throw_if_failed(averages->averager.set_weight(static_cast<double>(samples.count()), static_cast<double>(plan.batch)));
    if (shards != nullptr) {
      shards->rows.start_moves();
      shards->share = static_cast<double>(samples.count()) * static_cast<double>(world.size()) / static_cast<double>(plan.batch);
    }
    Step attempted(trainer, world, step, samples.begin, samples.count());
    step_function(attempted);
    if (!attempted.is_committed_) refuse("the step function has returned without a call of commit()");
  } catch (...) {
    // The gradients may be gone when the program has the error.
    averages.reset();
    throw;
  }
}

void ElasticTrainer::State::save_if_due(const TrainingPlan& plan) {
  const bool due = step == plan.steps || (options.checkpoint_every > 0 && step % options.checkpoint_every == 0);
  if (options.checkpoint.empty() || !due || saved >= step) return;
  save();
}

void ElasticTrainer::State::save() {
  save_checkpoint(natives(), options.checkpoint, on_disk(), {.step = step, .keep = options.keep, .stream = options.average.stream});
  saved = step;
}

/// While it waits it takes others in. All ranks stop waiting at the same vote; guests vote, too.
void ElasticTrainer::State::await_min_ranks() {
  while (is_short()) {
    if (!waits_until) waits_until = Clock::now() + min_ranks.wait;
    // Where nobody comes, the next job begins here.
    if (!options.checkpoint.empty() && saved < step) save();
    vote();
    if (signals.has_waited) throw PeerLost(native::describe_lack(min_ranks, world.size() - world.guests(), lost_last));
    grow();
    if (is_short()) std::this_thread::sleep_for(kWaitInterval);
    shared().poll_interruption();
  }
  waits_until.reset();
}

/// Returns on all ranks or on none. Where a rank was lost meanwhile, a rank may not have learnt the others' signals; the next collective
/// then fails.
void ElasticTrainer::State::vote() {
  if (!shared().elastic()) return;
  const bool has_waited = waits_until && Clock::now() >= *waits_until;
  Signals::Numbers least = Signals{shared().growth().standing(), has_waited}.numbers();
  signals = {};
  if (!shared().survivors().agree(true, {}, least)) {
    throw_if_failed(shared().world_failure());
    throw Cancelled({Errc::cancelled, "the ranks have not agreed on the step"});
  }
  signals = Signals::from(least);
}

/// New ranks meet the others while these train. Once all have met, all switch to the new world.
void ElasticTrainer::State::grow() {
  const auto begin = Clock::now();
  // No operation may be under way where all switch.
  if (step_of(signals.growth) == GrowthStep::enter) {
    averages.reset();
    if (shards != nullptr) shards->rows.finish_moves();
  }
  auto next = shared().growth().grow(signals.growth, call());
  if (!next) return;
  const int before = world.size();
  world = Group(std::move(next));
  is_new_world = true;
  const auto tell = [&] {
    if (options.on_change) options.on_change({world, {}, world.size() - before, {}, step, Clock::now() - begin});
  };
  try {
    settle();
  } catch (const Error&) {
    tell();
    throw;
  }
  tell();
}

bool ElasticTrainer::State::goes_on_after(const Error& error) const {
  const bool may_go_on = is_a_loss(error.status()) || error.status().code() == Errc::mismatch;
  return shared().elastic() && shared().interruptions() == interruptions && !is_applying && may_go_on &&
         is_a_loss(shared().world_failure());
}

/// A guest that does not train what the others train is as good as lost: all native ranks have this error, and go on without it.
void ElasticTrainer::State::let_guest_go(const Error& error) {
  const bool is_a_guest = error.status().rank() >= world.size() - world.guests();
  if (shared().elastic() && !is_applying && error.status().code() == Errc::mismatch && is_a_guest) world.revoke();
}

void ElasticTrainer::State::recover() {
  const auto begin = Clock::now();
  averages.reset();
  const Status cause = shared().world_failure();
  is_new_world = true;
  std::optional<Reformed> next;
  try {
    next = world.reform();
  } catch (const PeerLost& lost) {
    return rejoin(lost);
  }
  world = next->world;
  lost_last = cause;
  if (options.on_change) options.on_change({world, next->lost, 0, cause, step, Clock::now() - begin});
}

/// The others have gone on: this rank comes in again as a new one.
void ElasticTrainer::State::rejoin(const PeerLost& lost) {
  if (!options.rejoin) throw lost;
  lose_state();
  try {
    world = world.rejoin();
  } catch (const Error& error) {
    throw PeerLost({Errc::peer_lost, std::string(lost.what()) + "; it could not join them again: " + error.what(), lost.status().rank()});
  }
}

ElasticTrainer::ElasticTrainer(Group world, Checkpoint state, ElasticTrainerOptions options) {
  native::check_trainer(state, options);
  state_ = std::make_unique<State>(std::move(world), std::move(state), nullptr, std::move(options));
}
ElasticTrainer::ElasticTrainer(Group world, Checkpoint state, ElasticShards& shards, ElasticTrainerOptions options) {
  native::check_trainer(state, options);
  state_ = std::make_unique<State>(std::move(world), std::move(state), shards.state_.get(), std::move(options));
}
ElasticTrainer::~ElasticTrainer() = default;

void ElasticTrainer::run(const TrainingPlan& plan, const std::function<void(Step&)>& step) {
  if (plan.batch == 0) refuse("the plan's batch is 0; a step needs at least one sample");
  if (!step) refuse("the step function is empty");
  State& state = *state_;
  state.interruptions = state.shared().interruptions();
  if (std::exchange(state.is_applying, false)) state.lose_state();
  while (true) {
    try {
      state.settle();
      while (state.step < plan.steps) {
        state.save_if_due(plan);
        state.await_min_ranks();
        state.attempt(*this, plan, step);
        state.grow();
      }
      state.save_if_due(plan);
      // No rank leaves before all know that the last step is committed.
      state.vote();
      state.shared().growth().drop();
      return;
    } catch (const Error& error) {
      state.let_guest_go(error);
      if (!state.goes_on_after(error)) throw;
    }
    state.recover();
  }
}

const Group& ElasticTrainer::world() const noexcept { return state_->world; }
std::uint64_t ElasticTrainer::step() const noexcept { return state_->step; }
Checkpoint& ElasticTrainer::state() noexcept { return state_->checkpoint; }

void Step::add(TensorView gradient) {
  native::WorldAverages& averages = *trainer_.state_->averages;
  if (is_committed_) refuse("add() after commit()");
  // What has the weight 0 may hold infinities.
  if (count_ == 0) copy(Tensor(gradient.dtype(), gradient.shape()), gradient);
  throw_if_failed(averages.averager.add(gradient));
  is_averaged_ = false;
  averages.driver.drive(averages.averager);
}

void Step::average() {
  native::WorldAverages& averages = *trainer_.state_->averages;
  averages.averager.close();
  averages.driver.drive(averages.averager);
  is_averaged_ = true;
}

void Step::average(const Tree& gradients) {
  native::require_same_tree(world_, "average()", gradients, trainer_.state_->options.average.stream);
  for (const Leaf& leaf : gradients) add(leaf.values);
  average();
}

void Step::commit(const std::function<void()>& apply) {
  ElasticTrainer::State& state = *trainer_.state_;
  if (is_committed_) refuse("commit() is called a second time in one step");
  if (!is_averaged_) refuse("commit() before the added gradients hold their averages");
  if (!apply) refuse("the function given to commit() is empty");
  state.vote();
  is_committed_ = true;
  state.residuals.commit();
  state.is_applying = true;
  apply();
  state.is_applying = false;
  ++state.step;
  if (state.shards != nullptr) state.shards->gather();
}

}  // namespace ringlet
