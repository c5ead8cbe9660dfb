#include "run.hpp"

#include <algorithm>
#include <cstring>
#include <ringlet/trace.hpp>

#include "batches.hpp"
#include "hashes.hpp"
#include "training.hpp"

namespace train_text {
namespace {

constexpr std::uint16_t kMainStream = 0;
// The loss has a stream of its own, so that it and the gradients do not wait for each other.
constexpr std::uint16_t kLossStream = 1;

template <class T>
ringlet::TensorView view_of(T& number) {
  return {&number, ringlet::dtype_of<T>, 1};
}

double seconds_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Run::Run(const Settings& settings, const Corpus& corpus, int rank, int ranks, Transformer<float>& model, ParameterStore& store)
    : settings_(settings),
      corpus_(corpus),
      rank_(rank),
      ranks_(ranks),
      model_(model),
      store_(store),
      timekeeper_([](int /*samples*/, double seconds) { return seconds; }),
      acts_(settings),
      speeds_(ranks),
      counts_(speeds_.counts(settings.batch)),
      all_seconds_(static_cast<std::size_t>(ranks)),
      all_hashes_(static_cast<std::size_t>(ranks)) {}

bool Run::weighted() const { return shares_are_weighted(settings_, ranks_); }

int Run::windows() const { return validation_windows(corpus_, settings_.shape.context, settings_.validation_windows); }

Slice Run::slice_of_validation() const { return slice_of(speeds_.counts(windows()), rank_); }

bool Run::work(int samples) {
  bool done = true;
  if (act() == Act::validation) done = validate(samples);
  if (act() == Act::gradients) done = compute_gradients(samples);
  if (act() == Act::apply) {
    const ringlet::TraceSpan span("optimizer");
    store_.apply_gradients();
    end_step();
  }
  if (done) go_on();
  return done;
}

void Run::go_on() {
  computed_ = 0;
  acts_.go_on();
}

void Run::pass() { go_on(); }

void Run::follow(int committed) {
  store_.set_steps_done(static_cast<std::uint64_t>(committed));
  acts_.follow(committed);
}

/// Some ranks may have taken in speeds that others lack, so all forget them.
void Run::regroup(int rank, int ranks) {
  rank_ = rank;
  ranks_ = ranks;
  speeds_ = Speeds(ranks);
  counts_ = speeds_.counts(settings_.batch);
  all_seconds_.assign(static_cast<std::size_t>(ranks), 0.0);
  all_hashes_.assign(static_cast<std::size_t>(ranks), 0);
  samples_since_speeds_ = 0;
  seconds_since_speeds_ = 0;
  computed_ = 0;
  acts_.go_back();
}

bool Run::validate(int samples) {
  const Slice mine = slice_of_validation();
  if (computed_ == 0) sum_ = 0;
  const int count = std::min(samples, mine.count - computed_);
  if (count > 0 || (mine.count == 0 && store_.passes_without_samples())) {
    // A rank without a window still runs the model on one, with weight 0, because the others may need its shards.
    const Slice now = count > 0 ? Slice{mine.first + computed_, count} : Slice{0, 1};
    const ringlet::TraceSpan span("validation");
    sum_ += model_.forward(validation_batch(corpus_, settings_.shape.context, windows(), now), store_) * count / windows();
  }
  computed_ += count;
  return computed_ == mine.count;
}

bool Run::compute_gradients(int samples) {
  const Slice mine = slice_of_batch();
  if (computed_ == 0) begin_step();
  const int count = std::min(samples, mine.count - computed_);
  if (count > 0 || store_.passes_without_samples()) {
    const Slice now = count > 0 ? Slice{mine.first + computed_, count} : Slice{0, 1};
    const Batch batch = training_batch(corpus_, settings_.shape.context, settings_.seed, static_cast<std::uint64_t>(step()), now);
    // All sequences have the same number of bytes, so each rank's mean is weighted by its number of sequences.
    ringlet::TraceSpan forward("forward");
    loss_sum_ += model_.forward(batch, store_) * count / settings_.batch;
    forward.end();
    if (computed_ + count == mine.count && on_loss) on_loss();
    const ringlet::TraceSpan backward("backward");
    model_.backward(batch, store_, count > 0 ? store_.gradient_scale() : 0.0);
    store_.end_slice(count > 0 ? static_cast<double>(count) / mine.count : 0.0);
  }
  computed_ += count;
  if (computed_ < mine.count) return false;
  const double communicated = store_.communication_seconds() - act_communication_before_;
  if (mine.count > 0) {
    seconds_since_speeds_ += timekeeper_(mine.count, std::max(seconds_between(act_began_, Clock::now()) - communicated, 0.0));
    samples_since_speeds_ += mine.count;
  }
  return true;
}

void Run::begin_step() {
  step_began_ = act_began_ = Clock::now();
  step_communication_before_ = act_communication_before_ = store_.communication_seconds();
  loss_sum_ = 0;
  store_.begin_gradients(share(), settings_.batch, ranks_);
}

void Run::end_step() {
  training_seconds_ += seconds_between(step_began_, Clock::now());
  waiting_seconds_ += store_.communication_seconds() - step_communication_before_;
}

void Run::begin_average() { wait_began_ = Clock::now(); }

void Run::averaged() {
  waiting_seconds_ += seconds_between(wait_began_, Clock::now());
  go_on();
}

double Run::seconds_per_sample() const { return samples_since_speeds_ > 0 ? seconds_since_speeds_ / samples_since_speeds_ : my_seconds_; }

Exchange Run::exchange_of_loss() { return {Exchange::Kind::all_sum, view_of(loss_sum_), view_of(loss_sum_), kLossStream}; }

Exchange Run::exchange() {
  using Kind = Exchange::Kind;
  wait_began_ = Clock::now();
  const auto broadcast = [](ringlet::TensorView values) { return Exchange{Kind::broadcast, values, values, kMainStream}; };
  switch (act()) {
    case Act::beginning:
      return broadcast(view_of(beginning_));
    case Act::parameters:
      return broadcast(store_.values());
    case Act::state:
      pack_state();
      return broadcast(state_);
    case Act::loss_sum:
      return exchange_of_loss();
    case Act::speeds:
      my_seconds_ = samples_since_speeds_ > 0 ? seconds_per_sample() : 0.0;
      samples_since_speeds_ = 0;
      seconds_since_speeds_ = 0;
      return {Kind::all_gather, view_of(my_seconds_), all_seconds_, kMainStream};
    case Act::hashes:
      my_hash_ = store_.parameter_hash();
      return {Kind::all_gather, view_of(my_hash_), all_hashes_, kMainStream};
    case Act::waiting:
      sum_ = waiting_share();
      break;
    default:
      break;
  }
  return {Kind::all_sum, view_of(sum_), view_of(sum_), kMainStream};
}

std::string Run::exchanged() {
  std::string problem;
  switch (act()) {
    case Act::beginning:
      if (beginning_ < 0 || beginning_ > settings_.steps) return "rank 0 cannot begin: it says why";
      store_.set_steps_done(static_cast<std::uint64_t>(beginning_));
      acts_.begin_at(static_cast<int>(beginning_));
      break;
    case Act::state:
      unpack_state();
      break;
    case Act::validation_sum:
      validation_loss_ = sum_;
      break;
    case Act::loss_sum:
      loss_ = loss_sum_;
      waiting_seconds_ += seconds_between(wait_began_, Clock::now());
      problem = problem_of_loss(static_cast<std::uint64_t>(step()), loss_, "--learning-rate");
      break;
    case Act::speeds:
      speeds_.observe(all_seconds_);
      counts_ = speeds_.counts(settings_.batch);
      break;
    case Act::hashes:
      problem = compare_hashes();
      break;
    case Act::waiting:
      mean_waiting_share_ = sum_ / ranks_;
      break;
    default:
      break;
  }
  go_on();
  return problem;
}

std::string Run::compare_hashes() {
  steps_compared_ = step() < settings_.steps ? step() + 1 : step();
  return different_hashes(all_hashes_, steps_compared_);
}

void Run::pack_state() {
  state_.clear();
  for (const ringlet::Leaf& leaf : store_.whole_state()) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(leaf.values.data());
    state_.insert(state_.end(), bytes, bytes + leaf.values.bytes());
  }
}

void Run::unpack_state() {
  const std::uint8_t* next = state_.data();
  for (const ringlet::Leaf& leaf : store_.whole_state()) {
    std::memcpy(leaf.values.data(), next, leaf.values.bytes());
    next += leaf.values.bytes();
  }
  state_ = {};
}

}  // namespace train_text
