#include "tests/core/sim_training.hpp"

#include <algorithm>
#include <numeric>

#include "core/engine/requests.hpp"
#include "core/plan/part_layout.hpp"

namespace ringlet::test {

namespace {

/// No two samples of a run are alike.
std::int64_t contribution(std::uint64_t step, std::uint64_t sample) {
  return static_cast<std::int64_t>((step * 104'729 + sample * 7919) % 1'000'003 + 1);
}

constexpr std::int64_t kTakenBack = -77'777;
/// Steps that follow one another at once, and the pause between later ones: faults come early, and waiting for timers shall be cheap.
constexpr std::size_t kEagerSteps = 24;
constexpr Duration kPause = Duration::milliseconds(250);
constexpr std::uint64_t kMostEvents = 100'000;  // of ranks that come into one epoch after the other without end
constexpr Duration kDeafness = Duration::seconds(20);

EpochsOptions with_faults(EpochsOptions options, BrokenTrainer broken) {
  if (broken == BrokenTrainer::hears_too_early)
    options.prepare = [](World& world) {
      for (int rank = 0; rank < world.options().size; ++rank) world.hear(rank);
    };
  if (broken == BrokenTrainer::silence_is_proof) options.look_for_proof = [](int, const std::function<void(bool)>& done) { done(true); };
  if (broken == BrokenTrainer::forks) options.on_split = OnSplit::fork;
  if (broken == BrokenTrainer::looks_for_no_proof) options.look_for_proof = nullptr;
  if (broken == BrokenTrainer::leads_impatiently) options.report_timeout = Duration::microseconds(50);
  return options;
}

GroupSetup elastic(GroupSetup setup) {
  setup.world.elastic = true;
  setup.world.heartbeat_timeout = Duration::seconds(2);
  return setup;
}

}  // namespace

std::int64_t expected_sum(std::uint64_t step) {
  std::int64_t sum = 0;
  for (std::uint64_t sample = 0; sample < SimTrainer::kBatch; ++sample) sum += contribution(step, sample);
  return sum;
}

SimTrainer::SimTrainer(SimGroup& group, int rank, EpochsOptions options, BrokenTrainer broken)
    : loop_(group.node(rank).loop()),
      origin_(rank),
      broken_(broken),
      epochs_(loop_, group.take_world(rank), with_faults(std::move(options), broken)) {
  world_ = &epochs_.world();
  own_members().resize(static_cast<std::size_t>(group.size()));
  std::iota(own_members().begin(), own_members().end(), 0);
  begin_epoch();
  begin_step();
}

bool SimTrainer::goes_on(std::uint64_t steps) const {
  return !left_out_of_ && !waits_ && begins_.contains(epoch_) && step_ >= begins_.at(epoch_) + steps;
}

void SimTrainer::begin_epoch() {
  begins_[epoch_] = step_;
  if (broken_ == BrokenTrainer::keeps_old_shares && share_size_ != 0) return;
  share_rank_ = world_->options().rank;
  share_size_ = world_->options().size;
}

Duration SimTrainer::pause() const {
  const bool eager = !begins_.contains(epoch_) || step_ < begins_.at(epoch_) + kEagerSteps;
  return eager ? Duration::microseconds(3 + origin_) : kPause;
}

void SimTrainer::start(Result<CollectiveTask> task, void (SimTrainer::*next)()) {
  task.value().timeout = Duration::seconds(100);
  task.value().completion = [this, next](const Status& status) {
    --pending_;
    if (!status.ok()) return on_failure(status);
    // As a program that computes between two calls.
    loop_.after(pause(), guard_.wrap([this, next] { (this->*next)(); }));
  };
  ++pending_;
  world_->group().start(0, std::move(task).value());
}

void SimTrainer::take_buffer_back() {
  std::fill(sum_.begin(), sum_.end(), kTakenBack);
  const std::size_t size = sum_.size();
  taken_back_.push_back(std::move(sum_));
  sum_.assign(size, 0);
}

void SimTrainer::begin_step() {
  const ElementRange samples = rows_of(kBatch, share_size_, share_rank_);
  // Of a length that all algorithms take in turn.
  gradient_.assign(3 + step_ % 3 * 150, 0);
  const std::uint64_t batch = step_ + (broken_ == BrokenTrainer::draws_new_batch ? epoch_.second : 0);
  for (std::uint64_t sample = samples.begin; sample < samples.end; ++sample) gradient_[0] += contribution(batch, sample);
  gradient_[1] = static_cast<std::int64_t>(broken_ == BrokenTrainer::weighs_evenly ? kBatch / own_members().size() : samples.count());
  gradient_[2] = epoch_.second;
  sum_.assign(gradient_.size(), 0);
  start(make_all_reduce(ReduceOp::sum, ConstTensorView(gradient_), TensorView(sum_), 1, world_->group().options()),
        broken_ == BrokenTrainer::applies_without_vote ? &SimTrainer::apply : &SimTrainer::vote);
  if (broken_ == BrokenTrainer::takes_buffers_back) take_buffer_back();
}

void SimTrainer::vote() {
  votes_.call(true);
  is_voting_ = true;
  answer_ = 1;
  start(make_all_reduce(ReduceOp::min, ConstTensorView(&answer_, DType::i32, 1), TensorView(&answer_, DType::i32, 1), 1,
                        world_->group().options()),
        &SimTrainer::apply);
}

void SimTrainer::apply() {
  if (std::exchange(is_voting_, false)) votes_.set_result(true);
  take_step();
  begin_step();
}

void SimTrainer::take_step() {
  log_.push_back({step_, sum_[0], sum_[1]});
  const auto size = static_cast<std::int64_t>(own_members().size());
  if (sum_[2] != size * epoch_.second) wrong_ = "I4: an operation has values of another epoch";
  ++step_;
}

void SimTrainer::on_failure(const Status& status) {
  if (status.code() != Errc::peer_lost) wrong_ = "I4: an operation ended with " + status.text();
  if (!is_voting_) take_buffer_back();
  waits_ = true;
  epochs_.when_succeeded(*world_, [this](const Succession& succession) { go_on(succession); });
}

void SimTrainer::go_on(const Succession& succession) {
  waits_ = false;
  std::vector<int> next;
  for (const int rank : succession.members) next.push_back(own_members()[static_cast<std::size_t>(rank)]);
  if (succession.world == nullptr) {
    left_out_of_ = Epoch{succession.lineage, epoch_.second + 1};
    if (broken_ == BrokenTrainer::goes_on_alone) log_.push_back({step_, expected_sum(step_), static_cast<std::int64_t>(kBatch)});
    return;
  }
  held_.push_back(world_);
  world_ = succession.world;
  epoch_ = {succession.lineage, world_->options().epoch};
  if (!members_of_.emplace(epoch_, next).second) wrong_ = "I1: a rank came into one epoch twice";
  if (held_.size() > 2) {
    held_.front()->leave(held_.front()->group());
    held_.pop_front();
  }
  settle_votes();
}

void SimTrainer::settle_votes() {
  own_told_ = votes_.tell();
  told_.assign(own_members().size(), {});
  const TensorView all{told_.data(), DType::i64, told_.size() * own_told_.size()};
  start(make_all_gather({own_told_.data(), DType::i64, own_told_.size()}, all, world_->group().options()), &SimTrainer::resume_after_loss);
}

void SimTrainer::resume_after_loss() {
  if (broken_ == BrokenTrainer::ignores_results_of_others) told_.assign(told_.size(), own_told_);
  votes_.settle(told_, world_->options().epoch);
  const bool was_voting = std::exchange(is_voting_, false);
  const bool commits = was_voting && (broken_ == BrokenTrainer::believes_own_vote || votes_.answer());
  // The average is one of the epoch before.
  if (commits) log_.push_back({step_++, sum_[0], sum_[1]});
  if (!commits && broken_ == BrokenTrainer::skips_lost_step) ++step_;
  if (!commits && broken_ == BrokenTrainer::undoes_step) --step_;
  begin_epoch();
  begin_step();
}

std::string SimTrainer::wrong() const {
  for (const auto& buffer : taken_back_)
    if (!std::all_of(buffer.begin(), buffer.end(), [](std::int64_t value) { return value == kTakenBack; }))
      return "I4: a buffer was written after its operation had ended";
  if (!wrong_.empty()) return wrong_;
  if (pending_ != 0 && !world_->failure().ok()) return "I8: an operation outlives its world";
  for (std::size_t i = 0; i < log_.size(); ++i) {
    if (log_[i].step != i) return "I5: a step was left out, or undone and done again";
    if (log_[i].samples != static_cast<std::int64_t>(kBatch)) return "I10: a step has " + std::to_string(log_[i].samples) + " samples";
    if (log_[i].sum != expected_sum(i)) return "I9: a step has not each sample of its batch once";
  }
  return {};
}

// --- all of them ---

SimTraining::SimTraining(const GroupSetup& setup, OnSplit on_split, BrokenTrainer broken) : group_(elastic(setup)), on_split_(on_split) {
  group_.meet();
  for (int rank = 0; rank < group_.size(); ++rank) {
    EpochsOptions options;
    options.on_split = on_split;
    options.look_for_proof = [this, rank](int other, std::function<void(bool)> done) {
      group_.node(rank).loop().after(Duration::milliseconds(1), [this, other, done = std::move(done)] { done(refusing_.contains(other)); });
    };
    trainers_.emplace_back(group_, rank, std::move(options), broken);
  }
}

void SimTraining::end_when(int rank, StopKind kind, std::function<bool()> condition) {
  sim().stop(group_.node(rank), kind).when([this, rank, kind, condition = std::move(condition)] {
    if (!condition()) return false;
    ended_.insert(rank);
    // A machine without power refuses nothing.
    if (kind != StopKind::falls_silent) refusing_.insert(rank);
    return true;
  });
}

void SimTraining::break_at(std::uint64_t first, const TrainingFault& fault) {
  using Kind = TrainingFault::Kind;
  const auto now = [this, at = first + fault.event] { return sim().event_count() >= at; };
  SimNode &one = group_.node(fault.kind == Kind::network_parts ? 0 : fault.rank), &other = group_.node(fault.other);
  switch (fault.kind) {
    case Kind::process_ends:
      return end_when(fault.rank, StopKind::closes_links, now);
    case Kind::process_is_reset:
      return end_when(fault.rank, StopKind::resets_links, now);
    case Kind::power_fails:
      return end_when(fault.rank, StopKind::falls_silent, now);
    case Kind::stands_still:
      return sim().freeze(one).when(now);
    case Kind::link_is_cut:
      return sim().cut(one, other).when(now);
    case Kind::link_is_deaf:
      return sim().stall(one, other, kDeafness).when(now);
    case Kind::link_is_reset:
      return sim().reset(one, other).when(now);
    case Kind::network_parts:
      break;
  }
  for (int rank = 0; rank < group_.size(); ++rank)
    for (int peer = 0; peer < rank; ++peer)
      if ((fault.rank >> rank & 1) != (fault.rank >> peer & 1)) sim().cut(group_.node(rank), group_.node(peer)).when(now);
}

void SimTraining::heal() {
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (!ended_.contains(rank)) sim().resume(group_.node(rank)).now();
    for (int peer = 0; peer < rank; ++peer) sim().mend(group_.node(rank), group_.node(peer)).now();
  }
}

std::vector<int> SimTraining::living() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(trainers_.size()); ++rank)
    if (!ended_.contains(rank)) ranks.push_back(rank);
  return ranks;
}

std::vector<int> SimTraining::groups_that_go_on() {
  std::map<SimTrainer::Epoch, std::vector<int>> going;
  for (const int rank : living())
    if (trainer(rank).goes_on(2)) going[trainer(rank).epoch()].push_back(rank);
  std::vector<int> sizes;
  for (const auto& [epoch, ranks] : going)
    if (trainer(ranks.front()).members().at(epoch) == ranks) sizes.push_back(static_cast<int>(ranks.size()));
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes;
}

bool SimTraining::run_until_groups_go_on(const std::vector<int>& sizes, Duration limit) {
  return sim().run_until([&] { return groups_that_go_on() == sizes; }, {.events = kMostEvents, .time = limit}) == RunEnd::done;
}

std::string SimTraining::check() {
  if (std::string wrong = check_together(); !wrong.empty()) return wrong;
  for (const int rank : living())
    if (const std::string wrong = check_alone(rank); !wrong.empty()) return wrong + " (rank " + std::to_string(rank) + ")";
  return {};
}

std::string SimTraining::check_alone(int rank) {
  const SimTrainer& one = trainer(rank);
  if (std::string wrong = one.wrong(); !wrong.empty()) return wrong;
  // What the others have when they go on without a rank is all that it has committed with them.
  const auto& left_out_of = one.left_out_of();
  for (const int other : living())
    if (const auto& begins = trainer(other).begins(); left_out_of && begins.contains(*left_out_of))
      if (one.log().size() > begins.at(*left_out_of)) return "I12: a rank went on after the others had gone on without it";
  return {};
}

std::string SimTraining::check_together() {
  std::map<SimTrainer::Epoch, std::vector<int>> members;
  std::map<SimTrainer::Epoch, std::uint64_t> begins;
  std::map<std::uint32_t, std::uint64_t> lineages;
  for (const int rank : living()) {
    for (const auto& [epoch, its] : trainer(rank).members()) {
      if (members.try_emplace(epoch, its).first->second != its) return "I1: ranks know different members of one epoch";
      const bool is_new = lineages.try_emplace(epoch.second, epoch.first).second;
      if (!is_new && on_split_ == OnSplit::wait && lineages.at(epoch.second) != epoch.first) return "I6: an epoch has two successors";
    }
    for (const auto& [epoch, its] : trainer(rank).begins())
      if (begins.try_emplace(epoch, its).first->second != its) return "I2: a step was committed by some ranks and discarded by others";
  }
  // Where the sums are those of each step's batch, all have the same state after the same step.
  return {};
}

}  // namespace ringlet::test
