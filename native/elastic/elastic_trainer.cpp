#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <ringlet/elastic.hpp>
#include <ringlet/gradients.hpp>
#include <string>
#include <thread>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/plan/part_layout.hpp"
#include "native/agreement.hpp"
#include "native/elastic/trainer_options.hpp"
#include "native/elastic/trainer_state.hpp"
#include "native/procedure_driver.hpp"

namespace ringlet {

namespace {

// How often ranks that wait for others look whether somebody has come.
constexpr std::chrono::milliseconds kWaitInterval{20};

/// Whether those who are left can go on after it.
bool is_a_loss(const Status& status) { return status.code() == Errc::peer_lost || status.code() == Errc::cancelled; }

}  // namespace

void ElasticTrainer::State::attempt(ElasticTrainer& trainer, const std::function<void(Step&)>& step_function) {
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

/// While it waits it takes others in. All ranks stop waiting at the same vote; guests vote, too.
void ElasticTrainer::State::await_min_ranks() {
  while (is_short()) {
    if (!waits_until) waits_until = Clock::now() + min_ranks.wait;
    // Where nobody comes, the next job begins here.
    if (!options.checkpoint.empty() && saved < step) save();
    vote();
    if (signals.has_waited) throw PeerLost(native::describe_lack({least_ranks, min_ranks.wait}, world.size() - world.guests(), lost_last));
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

/// Whether a rank does not train what the others train, which is a guest or has just joined a training that had begun. All native ranks
/// have this error, and go on without that rank.
bool ElasticTrainer::State::names_joined_rank(const Error& error) const {
  const int rank = error.status().rank(), natives = world.size() - world.guests();
  if (!shared().elastic() || is_applying || error.status().code() != Errc::mismatch) return false;
  if (rank < 0 || rank >= natives || entered.empty()) return rank >= natives;
  return !entered[static_cast<std::size_t>(rank)].is_settled && compare_standings(entered).one_is_settled;
}

void ElasticTrainer::State::exclude(int rank) {
  if (rank >= world.size() - world.guests()) return world.revoke();
  try {
    // The rank stays until all know why it leaves. The second barrier ends with an error when it has left.
    natives().barrier(call());
    if (rank != world.rank()) natives().barrier(call());
  } catch (const Error&) {
  }
  if (rank == world.rank()) world.leave();
}

bool ElasticTrainer::State::goes_on_after(const Error& error) const {
  const bool is_excluded = names_joined_rank(error) && error.status().rank() == world.rank();
  const bool may_go_on = (is_a_loss(error.status()) || error.status().code() == Errc::mismatch) && !is_excluded;
  return shared().elastic() && shared().interruptions() == interruptions && !is_applying && may_go_on &&
         is_a_loss(shared().world_failure());
}

void ElasticTrainer::State::recover(const Error& error) {
  const auto begin = Clock::now();
  averages.reset();
  const Status cause = error.status().code() == Errc::mismatch ? error.status() : shared().world_failure();
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
  state.plan = plan;
  state.interruptions = state.shared().interruptions();
  if (std::exchange(state.is_applying, false)) state.lose_state();
  while (true) {
    try {
      state.settle();
      while (state.step < plan.steps) {
        state.save_if_due();
        state.await_min_ranks();
        state.attempt(*this, step);
        state.grow();
      }
      state.save_if_due();
      // No rank leaves before all know that the last step is committed.
      state.vote();
      state.shared().growth().drop();
      return;
    } catch (const Error& error) {
      if (state.names_joined_rank(error)) state.exclude(error.status().rank());
      if (!state.goes_on_after(error)) throw;
      state.recover(error);
    }
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
  state.entered.clear();
  is_committed_ = true;
  state.residuals.commit();
  state.is_applying = true;
  apply();
  state.is_applying = false;
  ++state.step;
  if (state.shards != nullptr) state.shards->gather();
}

}  // namespace ringlet
