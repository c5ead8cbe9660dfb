#include "trainer.hpp"

#include <unistd.h>

#include <chrono>
#include <span>
#include <stdexcept>
#include <utility>

#include "checkpoints.hpp"
#include "generate.hpp"
#include "input_error.hpp"
#include "modes.hpp"
#include "shared_inputs.hpp"

namespace train_text {
namespace {

using Clock = std::chrono::steady_clock;

// How often ranks that wait for others look whether somebody has come.
constexpr useconds_t kWaitIntervalUs = 20'000;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

ringlet::Work start(ringlet::Group& group, const Exchange& exchange) {
  const ringlet::CallOptions call{.stream = {exchange.stream}};
  switch (exchange.kind) {
    case Exchange::Kind::broadcast:
      return group.broadcast_async(exchange.output, 0, call);
    case Exchange::Kind::all_sum:
      return group.all_reduce_async(ringlet::ReduceOp::sum, exchange.input, exchange.output, call);
    case Exchange::Kind::all_gather:
      break;
  }
  return group.all_gather_async(exchange.input, exchange.output, call);
}

}  // namespace

Trainer::Trainer(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins)
    : options_(options),
      min_ranks_(ringlet::read_min_ranks()),
      corpus_(corpus),
      group_(std::move(group)),
      text_hash_(hash_of(std::as_bytes(corpus.text()))),
      model_(options.shape, options.seed),
      store_(make_parameter_store(options, model_, group_)),
      run_(std::make_unique<Run>(options, corpus, group_.rank(), group_.size(), model_, *store_)),
      lacks_state_(joins) {
  run_->on_loss = [this] { loss_sum_ = start(group_, run_->exchange_of_loss()); };
}

Trainer::~Trainer() = default;

Act Trainer::advance() {
  const Act act = run_->act();
  std::string cause;
  try {
    if (lacks_state_) {
      settle();
      first_step_ = run_->committed();
      regrouping_ = {group_.size(), group_.size() - 1, is_short(), "", 0, false, ""};
      return Act::regroup;
    }
    if (act == Act::gradients && admit()) return Act::regroup;
    if (act == Act::gradients && is_short()) {
      await_others();
      return Act::regroup;
    }
    waits_until_.reset();
    carry_out(act);
    return act;
  } catch (const ringlet::Error& error) {
    if (!goes_on_after(error)) throw;
    cause = error.what();
  }
  reform(cause);
  return Act::regroup;
}

bool Trainer::goes_on_after(const ringlet::Error& error) const {
  return group_.elastic() && store_->survives_losses() &&
         (error.status().code() == ringlet::Errc::peer_lost || error.status().code() == ringlet::Errc::cancelled);
}

void Trainer::reform(const std::string& cause) {
  const auto begin = Clock::now();
  const int before = group_.size();
  loss_sum_.reset();
  step_span_.reset();
  const ringlet::TraceSpan span("reform");
  bool rejoined = false;
  while (true) {
    rejoined = enter_next_world() || rejoined;
    try {
      settle();
      break;
    } catch (const ringlet::Error& error) {
      if (!goes_on_after(error)) throw;
    }
  }
  regrouping_ = {group_.size(), before, is_short(), cause, seconds_since(begin), rejoined, std::exchange(went_back_, {})};
}

/// Returns whether the others have gone on without this rank. It has joined them again then, and has no state.
bool Trainer::enter_next_world() {
  try {
    group_ = group_.reform().world;
    return false;
  } catch (const ringlet::PeerLost&) {
    lacks_state_ = true;
  }
  store_->forget();
  group_ = group_.rejoin();
  (void)share_inputs(group_, options_, [this] { return Bytes(corpus_.text().begin(), corpus_.text().end()); }, true);
  return true;
}

/// Browsers do not count.
bool Trainer::is_short() const {
  return group_.elastic() && store_->survives_losses() && group_.size() - group_.guests() < min_ranks_.count;
}

/// Nothing is computed meanwhile, so no step is lost.
void Trainer::await_others() {
  if (!waits_until_) waits_until_ = Clock::now() + min_ranks_.wait;
  while (!admit()) {
    if (Clock::now() >= *waits_until_)
      throw std::runtime_error(std::to_string(group_.size() - group_.guests()) + " of at least " + std::to_string(min_ranks_.count) +
                               " ranks are left, and not enough have joined within " + std::to_string(min_ranks_.wait.count() / 1000) +
                               " s");
    ::usleep(kWaitIntervalUs);
  }
}

/// Returns whether ranks have joined.
bool Trainer::admit() {
  if (!group_.elastic() || !store_->survives_losses()) return false;
  const auto begin = Clock::now();
  const int before = group_.size();
  const auto next = group_.admit();
  if (!next) return false;
  group_ = next->world;
  // The new ranks are to learn what the others know.
  (void)share_inputs(group_, options_, [this] { return Bytes(corpus_.text().begin(), corpus_.text().end()); }, true);
  settle();
  regrouping_ = {group_.size(), before, is_short(), "", seconds_since(begin), false, ""};
  return true;
}

/// Begins in a new group: gives ranks that have joined what they lack, and has all go back to what follows the last committed step.
void Trainer::settle() {
  if (const std::string lost = store_->set_group(group_); !lost.empty()) go_back(lost);
  // Where others have gone back to a checkpoint, and this rank has not learnt of it, the state says so.
  if (const auto steps = store_->steps_in_group(); steps && run_->committed() > 0) run_->follow(static_cast<int>(*steps));
  std::vector<std::int32_t> lacking{lacks_state_ ? 1 : 0};
  group_.all_sum(lacking);
  if (lacking[0] != 0) fill();
  run_->regroup(group_.rank(), group_.size());
}

/// Nobody has a part of the state any more.
void Trainer::go_back(const std::string& lost) {
  if (!options_.saves)
    throw std::runtime_error(lost + " are lost with all ranks that held them, and nothing was saved: give a folder with --checkpoint");
  const int step = resume_training(options_, text_hash_, *store_, group_);
  run_->follow(step);
  lacks_state_ = false;
  went_back_ = lost + " were lost with all ranks that held them; going back to the checkpoint of step " + std::to_string(step);
}

void Trainer::fill() {
  std::vector<std::int64_t> committed{lacks_state_ ? -1 : run_->committed()};
  group_.broadcast(committed, 0);
  if (committed[0] < 0) throw std::runtime_error("all ranks that had the parameters are lost");
  group_.broadcast(store_->values(), 0);
  for (const ringlet::Leaf& leaf : store_->whole_state()) group_.broadcast(leaf.values, 0);
  run_->follow(static_cast<int>(committed[0]));
  lacks_state_ = false;
}

/// Returns on all ranks or on none, so that all who go on after a loss have the same parameters.
void Trainer::commit() {
  if (group_.elastic() && !group_.agree(true)) group_.barrier();
}

void Trainer::carry_out(Act act) {
  switch (act) {
    case Act::beginning:
      if (const std::string lost = store_->set_group(group_); !lost.empty()) throw std::runtime_error(lost + " are lost");
      begin();
      carry_out_exchange();
      first_step_ = run_->step();
      break;
    case Act::apply:
      if (store_->survives_losses()) commit();
      run_->work(Run::kAll);
      step_span_.reset();
      break;
    case Act::gradients:
      step_span_.emplace("step");
      run_->work(Run::kAll);
      break;
    case Act::validation:
      run_->work(Run::kAll);
      break;
    case Act::average: {
      run_->begin_average();
      const ringlet::TraceSpan span("rest of the average");
      store_->average();
      run_->averaged();
      break;
    }
    case Act::checkpoint: {
      const ringlet::TraceSpan span("checkpoint");
      save();
      run_->pass();
      break;
    }
    case Act::sample:
      if (options_.sample_bytes > 0) sample_ = generate(model_, *store_, "\n", {.bytes = options_.sample_bytes});
      run_->pass();
      break;
    case Act::end:
      break;
    default:
      carry_out_exchange();
  }
}

void Trainer::carry_out_exchange() {
  const Exchange exchange = run_->exchange();
  ringlet::Work work = loss_sum_ && run_->act() == Act::loss_sum ? std::move(*loss_sum_) : start(group_, exchange);
  loss_sum_.reset();
  work.wait();
  if (const std::string problem = run_->exchanged(); !problem.empty()) throw std::runtime_error(problem);
}

// Browsers have no files. In a group with browsers, rank 0 alone saves and loads; it has the whole state.
bool Trainer::has_checkpoints() const { return options_.saves && (options_.guests == 0 || group_.rank() == 0); }
ringlet::Group Trainer::saving_group() const { return options_.guests == 0 ? group_ : ringlet::Group(); }

void Trainer::begin() {
  if (!has_checkpoints()) return;
  try {
    if (!options_.resume) return require_no_checkpoint(options_, saving_group());
    run_->set_beginning(resume_training(options_, text_hash_, *store_, saving_group()));
  } catch (const InputError&) {
    // Only this rank knows the reason, so it tells the others rather than let them wait.
    if (options_.guests > 0) {
      run_->set_beginning(-1);
      start(group_, run_->exchange()).wait();
    }
    throw;
  }
}

void Trainer::save() {
  if (has_checkpoints()) save_training(options_, text_hash_, *store_, saving_group(), run_->step() + 1);
}

}  // namespace train_text
