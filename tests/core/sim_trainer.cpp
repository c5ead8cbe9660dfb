#include "tests/core/sim_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/engine/requests.hpp"

namespace ringlet::test {

namespace {

constexpr float kTakenBack = -77'777;
/// Steps that follow one another at once, and the pause between later ones: faults come early, and waiting for timers shall be cheap.
constexpr std::size_t kEagerSteps = 24;
constexpr Duration kPause = Duration::milliseconds(250);
constexpr std::size_t kBlocks = 3, kBlockSize = 2 * kSimParameters / kBlocks;
constexpr std::uint64_t kManySteps = 1'000'000;

/// Never 0.
std::uint64_t checksum_of(const SimState& state) {
  ToyHash hash(1);
  hash.mix(std::as_bytes(std::span(state)));
  return hash.value() | 1;
}

}  // namespace

EpochsOptions spoil(EpochsOptions options, BrokenTrainer broken) {
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

void SimTrainer::begin(std::unique_ptr<World> world) {
  world_ = world.get();
  std::vector<int> members(static_cast<std::size_t>(world->options().size));
  std::iota(members.begin(), members.end(), 0);
  own_members() = members;
  if (town_.shards) rows_ = std::make_unique<SimRows>(world->options().size, world->options().rank, true, broken_);
  check_doors();
  epochs_ = std::make_unique<Epochs>(loop_, std::move(world), town_.epochs_options(process_, std::move(members), 0));
  door_->knocks().open();
  settle_state();
}

bool SimTrainer::goes_on(std::uint64_t steps) const {
  return !waits_ && !before_ && begins_.contains(epoch_) && step_ >= begins_.at(epoch_) + steps;
}

Duration SimTrainer::pause() const {
  const bool eager = !begins_.contains(epoch_) || step_ < begins_.at(epoch_) + kEagerSteps;
  return eager ? Duration::microseconds(3 + process_) : kPause;
}

void SimTrainer::start(Result<CollectiveTask> task, Next next) {
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

// --- steps ---

void SimTrainer::take_buffer_back() {
  std::fill(sum_.begin(), sum_.end(), kTakenBack);
  const std::size_t size = sum_.size();
  taken_back_.push_back(std::move(sum_));
  sum_.assign(size, 0);
}

void SimTrainer::begin_epoch() {
  begins_[epoch_] = step_;
  if (is(BrokenTrainer::keeps_old_shares) && share_size_ != 0) return;
  share_rank_ = rank();
  share_size_ = world_->options().size;
}

void SimTrainer::begin_step() {
  if (rows_) {
    gathered_.assign(static_cast<std::size_t>(world_->options().size), {});
    state_ = rows_->own();
    return gather(DType::f32, state_, gathered_, &SimTrainer::on_rows_gathered);
  }
  compute_gradient();
  start(averaging(), is(BrokenTrainer::applies_without_vote) ? &SimTrainer::on_voted : &SimTrainer::vote);
  if (is(BrokenTrainer::takes_buffers_back)) take_buffer_back();
}

void SimTrainer::compute_gradient() {
  const int place = is(BrokenTrainer::takes_shares_in_other_order) ? share_size_ - 1 - share_rank_ : share_rank_;
  const ElementRange samples = rows_of(kSimBatch, share_size_, place);
  gradient_ = sim_gradient(state_, step_ + (is(BrokenTrainer::draws_new_batch) ? epoch_.number : 0), samples);
  average_epoch_ = static_cast<int>(epoch_.number);
  if (is(BrokenTrainer::weighs_evenly)) gradient_[1] = static_cast<float>(kSimBatch / own_members().size());
  gradient_[2] = static_cast<float>(average_epoch_);
  sum_.assign(gradient_.size(), 0);
}

Result<CollectiveTask> SimTrainer::averaging() {
  const WorldOptions& options = world_->group().options();
  auto task = make_all_reduce(ReduceOp::sum, ConstTensorView(gradient_), TensorView(sum_), 1, options);
  average_ = {options.size, world_->options().guests, task.value().call.algorithm};
  return task;
}

GrowthStanding SimTrainer::growth_standing() {
  if (is_guest()) return GrowthStanding::idle;
  GrowthState state = growth_ ? growth_->state() : GrowthState::none;
  if (is(BrokenTrainer::switches_when_forming) && state == GrowthState::forming) state = GrowthState::ready;
  return standing_of(state, door_->knocks().waiting() > 0);
}

void SimTrainer::vote() {
  votes_->call(true);
  voting_ = Vote::on_step;
  answer_ = {1, static_cast<std::int32_t>(growth_standing())};
  const TensorView least{answer_.data(), DType::i32, answer_.size()};
  start(make_all_reduce(ReduceOp::min, least, least, 1, world_->group().options()), &SimTrainer::on_voted);
}

void SimTrainer::on_voted() {
  least_ = GrowthStanding::idle;
  if (std::exchange(voting_, Vote::none) == Vote::on_step) {
    votes_->set_result(true);
    least_ = static_cast<GrowthStanding>(answer_[1]);
  }
  commit();
  grow();
}

void SimTrainer::commit() {
  if (step_ != next_step_) wrong_ = "I5: a step was left out, or undone and done again";
  if (sum_[2] != static_cast<float>(average_.ranks * average_epoch_)) wrong_ = "I4: an operation has values of another epoch";
  Applied one{step_, std::llround(sum_[0]), std::llround(sum_[1]), average_, state_, {}};
  if (is(BrokenTrainer::divides_its_own_way) && process_ % 2 != 0)
    for (float& value : sum_) value = value * (1.0F / kSimBatch) * kSimBatch;
  if (rows_)
    commit_rows();
  else
    take_sim_step(state_, sum_);
  one.after = state_;
  log_.push_back(one);
  next_step_ = ++step_;
}

// --- the state ---

void SimTrainer::settle_state() {
  told_state_ = {is_settled_, told_step(), 0};
  gather(DType::u64, told_state_, told_states_, &SimTrainer::on_standings);
}

void SimTrainer::on_standings() {
  std::vector<EntryStanding> all;
  for (int native = 0; native < world_->options().natives(); ++native) {
    const ToldState& one = told_states_[static_cast<std::size_t>(native)];
    all.push_back({one[0] != 0, one[1], one[2]});
    if (is_settled_ && one[0] != 0 && one[1] != step_) wrong_ = "I2: a step was committed by some ranks and discarded by others";
  }
  if (town_.shards) return tell_rows();
  if (compare_standings(all).is_same && world_->options().guests == 0) return have_state();
  told_state_ = {lacks_ && !boasts() ? 0 : checksum_of(state_), told_step(), 0};
  gather(DType::u64, told_state_, told_states_, &SimTrainer::on_checksums);
}

void SimTrainer::on_checksums() {
  std::vector<Standing> standings;
  const bool inverted = is(BrokenTrainer::takes_from_those_behind);
  for (const ToldState& one : told_states_) {
    standings.push_back({one[0] == 0, inverted ? kManySteps - one[1] : one[1], {one[0], 0}});
  }
  const bool believes = is(BrokenTrainer::believes_guests);
  hand_over_ = plan_hand_over(standings, believes ? standings.size() : static_cast<std::size_t>(world_->options().natives()));
  if (inverted) hand_over_.step = kManySteps - hand_over_.step;
  has_no_state_ = hand_over_.givers.empty();
  if (has_no_state_) return;
  const bool takes = hand_over_.takes(rank());
  if (!takes && lacks_ && !boasts()) wrong_ = "I11: a rank gives a state that it has not";
  if (takes) lacks_ = !is(BrokenTrainer::gives_unfilled);
  if (takes && !lacks_) step_ = next_step_ = hand_over_.step;
  if (hand_over_.takers.empty()) return have_state();
  block_ = 0;
  take_block();
}

void SimTrainer::take_block() {
  block_values_.assign(kBlockSize, 0);
  const int giver = hand_over_.giver_of(block_);
  const auto first = state_.begin() + static_cast<std::ptrdiff_t>(block_ * kBlockSize);
  if (giver == rank()) block_values_.assign(first, first + kBlockSize);
  start(make_broadcast(TensorView(block_values_), giver, world_->group().options()), &SimTrainer::on_block);
}

void SimTrainer::on_block() {
  const std::size_t place = is(BrokenTrainer::takes_wrong_blocks) ? (block_ + 1) % kBlocks : block_;
  if (hand_over_.takes(rank()) && !is(BrokenTrainer::computes_unfilled))
    std::copy(block_values_.begin(), block_values_.end(), state_.begin() + static_cast<std::ptrdiff_t>(place * kBlockSize));
  if (++block_ < kBlocks) return take_block();
  const bool is_right = checksum_of(state_) == hand_over_.checksum[0];
  is_right_ =
      !hand_over_.takes(rank()) || is_right || is(BrokenTrainer::computes_unfilled) || is(BrokenTrainer::takes_wrong_blocks) ? 1 : 0;
  const TensorView all{&is_right_, DType::i32, 1};
  start(make_all_reduce(ReduceOp::min, all, all, 1, world_->group().options()), &SimTrainer::on_state_checked);
}

void SimTrainer::on_state_checked() {
  if (is_right_ == 0) wrong_ = "I11: a rank was given another state than its givers had";
  if (hand_over_.takes(rank())) {
    // From one part of a network to another one, which had gone on each by itself.
    const bool comes_from_other_half = town_.on_split == OnSplit::fork && (is_guest() || std::exchange(had_gone_on_alone_, false));
    if (hand_over_.step < next_step_ && !comes_from_other_half) wrong_ = "I5: a committed step was undone by a state of fewer steps";
    taken_.push_back({hand_over_.step, state_});
    step_ = next_step_ = hand_over_.step;
  }
  have_state();
}

void SimTrainer::have_state() {
  lacks_ = false;
  is_settled_ = true;
  begin_epoch();
  begin_step();
}

// --- after a loss ---

void SimTrainer::revoke() {
  town_.revokes = true;
  world_->fail({Errc::cancelled, "process " + std::to_string(process_) + " has ended the epoch", rank()});
}

void SimTrainer::on_failure(const Status& status) {
  // Who has come into the next world ends the one before on purpose, for those who are still in agree() there.
  const bool may_be_ended =
      (is_guest() || world_->options().guests > 0 || voting_ == Vote::on_switch || town_.revokes) && status.code() == Errc::cancelled;
  if (status.code() != Errc::peer_lost && !may_be_ended) wrong_ = "I4: an operation ended with " + status.text();
  if (voting_ == Vote::none || is_guest()) {
    take_buffer_back();
    if (!is_entering_ && !is_guest()) drop_growth();
  }
  is_guest() ? come_again() : follow();
}

void SimTrainer::go_on(const Succession& succession) {
  if (is_entering_) {
    std::vector<int> met;
    for (const int member : succession.members) met.push_back(met_as_[static_cast<std::size_t>(member)]);
    if (succession.world == nullptr || !is_among_members(met, *ticket_)) return knock_again();
    met_as_ = std::move(met);
  }
  if (succession.world == nullptr) return be_left_out(succession);
  std::vector<int> next;
  for (const int member : succession.members) next.push_back(own_members()[static_cast<std::size_t>(member)]);
  waits_ = false;
  if (world_->options().guests > 0) door_->knocks().expect_guests(static_cast<std::size_t>(count_returning_guests(*world_)));
  held_.push_back(world_);
  world_ = succession.world;
  epoch_ = {succession.lineage, world_->options().epoch, epoch_.chain};
  if (!members_of_.emplace(epoch_, next).second) wrong_ = "I1: a rank came into one epoch twice";
  check_doors();
  if (held_.size() > 2 && !is(BrokenTrainer::keeps_old_groups)) {
    held_.front()->leave(held_.front()->group());
    held_.pop_front();
  }
  settle_votes();
}

void SimTrainer::be_left_out(const Succession& succession) {
  if (is(BrokenTrainer::goes_on_alone)) ++next_step_;
  left_out_ = {{succession.lineage, epoch_.number + 1, epoch_.chain}, next_step_};
  if (rows_) rows_->forget();
  if (!rejoins_) return;
  door_->knocks().shut();
  doors_.clear();
  had_gone_on_alone_ = epoch_.lineage != 0;
  for (int peer = 0; peer < world_->options().natives(); ++peer)
    if (peer != rank()) doors_.push_back(world_->door(peer));
  // Where it had gone on alone, those with which it has begun are not in its world.
  for (const auto& [epoch, members] : members_of_)
    for (const int member : members)
      if (epoch.chain == epoch_.chain && member != process_) doors_.push_back(town_.door(member));
  voting_ = Vote::none;
  is_settled_ = false;
  lacks_ = !is(BrokenTrainer::takes_from_those_behind);
  knock_again();
}

void SimTrainer::settle_votes() {
  own_told_ = votes_->tell();
  gather(DType::i64, own_told_, told_, &SimTrainer::resume_after_loss);
}

void SimTrainer::resume_after_loss() {
  if (is(BrokenTrainer::ignores_results_of_others)) told_.assign(told_.size(), own_told_);
  votes_->settle(told_, world_->options().epoch);
  if (is_entering_) return be_in();
  const Vote vote = std::exchange(voting_, Vote::none);
  if (vote == Vote::on_switch && votes_->answer()) return switch_over();
  const bool commits = vote == Vote::on_step && (is(BrokenTrainer::believes_own_vote) || votes_->answer());
  if (vote == Vote::on_rows && votes_->answer()) rows_->take();
  // The average is one of the epoch before.
  if (commits) commit();
  if (!commits && is(BrokenTrainer::skips_lost_step)) ++step_;
  if (!commits && is(BrokenTrainer::undoes_step)) --step_;
  drop_growth();
  settle_state();
}

// --- what must hold ---

/// Whoever is left out later joins again by them. Guests have none.
void SimTrainer::check_doors() {
  for (int peer = 0; peer < world_->options().size; ++peer) {
    const Address known = world_->door(peer);
    const int process = own_members()[static_cast<std::size_t>(peer)];
    if (peer < world_->options().natives() ? known != town_.door(process) : known.port != 0)
      wrong_ = "a rank does not know where another one's door is";
  }
}

void SimTrainer::forget_history() {
  log_ = {};
  taken_ = {};
  rows_log_ = {};
  if (!is(BrokenTrainer::keeps_old_buffers)) taken_back_ = {};
  members_of_ = {{epoch_, own_members()}};
  begins_ = {{epoch_, begins_.at(epoch_)}};
}

std::string SimTrainer::wrong() const {
  for (const auto& buffer : taken_back_)
    if (!std::all_of(buffer.begin(), buffer.end(), [](float value) { return value == kTakenBack; }))
      return "I4: a buffer was written after its operation had ended";
  if (!wrong_.empty()) return wrong_;
  if (pending_ != 0 && world_ != nullptr && !world_->failure().ok()) return "I8: an operation outlives its world";
  const SimState* last = nullptr;
  const SimState first{};
  for (const Applied& one : log_) {
    if (one.samples != static_cast<std::int64_t>(kSimBatch)) return "I10: a step has " + std::to_string(one.samples) + " samples";
    if (one.sum != expected_sum(one.step)) return "I9: a step has not each sample of its batch once";
    if (town_.shards) continue;
    const bool follows = last != nullptr ? one.before == *last : one.step == 0 && one.before == first;
    const auto is_start = [&](const Taken& taken) { return taken.step == one.step && taken.state == one.before; };
    if (!follows && std::none_of(taken_.begin(), taken_.end(), is_start))
      return "I11: a rank has computed from a state that it was not given";
    if (one.after != reference_step(one.before, one.step, one.average)) return "I3: a step's bits are not those of an undisturbed run";
    last = &one.after;
  }
  return {};
}

}  // namespace ringlet::test
