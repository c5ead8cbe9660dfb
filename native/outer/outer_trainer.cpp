#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <ringlet/outer.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/refuse.hpp"
#include "native/agreement.hpp"
#include "native/elastic/trainer_state.hpp"
#include "native/elastic/world_averages.hpp"
#include "native/outer/check_outer.hpp"
#include "native/outer/fragment.hpp"
#include "native/outer/pace.hpp"
#include "native/residual_addends.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

namespace {

constexpr const char* kInnerSteps = "outer_inner_steps";
constexpr const char* kFragments = "outer_fragments";
// How many samples a rank had in the mean at the last average.
constexpr const char* kMeanSamples = "outer_mean_samples";

constexpr std::size_t kReportNumbers = 2;
static_assert(sizeof(native::InnerReport) == kReportNumbers * sizeof(double));

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

struct OuterTrainer::State {
  using Inner = std::function<double(const InnerStep&)>;

  /// The averages of one attempt, which end with it.
  struct UnderWay {
    std::vector<native::InnerReport> reports;  // by rank
    native::InnerReport own;
    double expected_total = 0;                                     // of all ranks' samples; the weights are shares of it
    double total = 0;                                              // as it is
    bool overlaps = false;                                         // this rank has taken inner steps meanwhile
    std::vector<std::unique_ptr<native::WorldAverages>> averages;  // by fragment
    Work report;                                                   // declared last: it borrows the reports
  };

  State(Group world, const Tree& parameters, OuterTrainerOptions o);

  Checkpoint contents();
  ElasticTrainerOptions elastic_options();
  void take_over(const Checkpoint& state, std::uint64_t step);
  void begin_round(std::uint64_t number);
  void attempt(Step& step, bool is_last, const Inner& inner);
  void take_steps(int until, const Group& world, const Inner& inner);
  void start(UnderWay& under_way, Group& world);
  static double total_samples(UnderWay& under_way);
  void finish(UnderWay& under_way);
  void apply(const UnderWay& under_way);

  const OuterTrainerOptions options;
  const std::function<double()> clock;
  const int interval;
  const Tree own;
  std::vector<Tensor> memory;
  Tree shared;
  std::deque<native::Fragment> fragments;
  SGD optimizer;

  std::uint64_t round = 0;       // the number of the next average
  int steps_planned, taken = 0;  // inner steps before it
  double seconds_per_step = 0;   // of the inner steps before the last average
  double seconds = 0;            // of those since
  std::vector<double> samples;   // of this rank since each fragment's last average
  std::vector<double> sent;      // those that the differences under way come from
  std::vector<int> in_turn;      // the fragments of the next average
  ElasticTrainer trainer;
};

OuterTrainer::State::State(Group world, const Tree& parameters, OuterTrainerOptions o)
    : options(std::move(o)),
      clock(options.clock ? options.clock : steady_seconds),
      interval(options.inner_steps / options.fragments),
      own(parameters),
      optimizer(options.learning_rate, {.momentum = options.momentum, .nesterov = options.nesterov && options.momentum > 0}),
      steps_planned(interval),
      samples(static_cast<std::size_t>(options.fragments)),
      trainer(std::move(world), contents(), elastic_options()) {}

/// Makes the shared parameters and the optimizer's state, and returns what the group's ranks have in common.
Checkpoint OuterTrainer::State::contents() {
  shared = own.map([&](const std::string&, const TensorView& values) -> TensorView {
    memory.push_back(Tensor::copy_of(values));
    return memory.back();
  });
  for (const auto [begin, end] : native::cut_fragments(own, options.fragments)) {
    const auto part = [begin = begin, end = end](const Tree& tree) { return Tree(tree.leaves().subspan(begin, end - begin)); };
    fragments.emplace_back(part(own), part(shared));
  }
  optimizer.init(shared);
  Checkpoint state;
  state.add("parameters", shared).add("outer_optimizer", optimizer.state());
  std::vector<native::ResidualAddends::Part> residuals;
  for (native::Fragment& fragment : fragments) residuals.push_back({&fragment.residuals, std::to_string(residuals.size()) + "."});
  native::add_residuals(state, "outer_residuals", options.wire, std::move(residuals));
  return state.set(kInnerSteps, options.inner_steps).set(kFragments, options.fragments);
}

ElasticTrainerOptions OuterTrainer::State::elastic_options() {
  ElasticTrainerOptions elastic = options.elastic;
  elastic.average.communication_type = options.wire;
  elastic.on_state = [this](const Checkpoint& state, std::uint64_t step) { take_over(state, step); };
  return elastic;
}

/// This rank has the state of others or of a checkpoint. What it has learnt since its own last average is of another training.
void OuterTrainer::State::take_over(const Checkpoint& state, std::uint64_t step) {
  const auto inner_steps = state.get<std::int64_t>(kInnerSteps), parts = state.get<std::int64_t>(kFragments);
  if (inner_steps != options.inner_steps || parts != options.fragments)
    refuse(fmt::format("the other ranks, or the checkpoint, train with {} inner steps and {} fragments, and this rank with {} and {}",
                       inner_steps, parts, options.inner_steps, options.fragments));
  optimizer.set_step(step);
  for (native::Fragment& fragment : fragments) fragment.adopt(0);
  samples.assign(samples.size(), 0);
  begin_round(step);
  if (options.elastic.on_state) options.elastic.on_state(state, step);
}

void OuterTrainer::State::begin_round(std::uint64_t number) {
  round = number;
  taken = 0;
  seconds = 0;
}

void OuterTrainer::State::attempt(Step& step, bool is_last, const Inner& inner) {
  // The state has been replaced by one of another step, which begins anew.
  if (round != step.number()) begin_round(step.number());
  in_turn.clear();
  const auto turn = static_cast<int>(round % fragments.size());
  // The fragment whose turn it is comes first: its samples are those of a whole round.
  for (int i = 0; i < (is_last ? options.fragments : 1); ++i) in_turn.push_back((turn + i) % options.fragments);
  const int overlapped = is_last ? 0 : native::overlapped_steps(steps_planned, options.overlap, interval);
  take_steps(steps_planned - overlapped, step.world(), inner);
  UnderWay under_way;
  start(under_way, step.world());
  under_way.overlaps = taken < steps_planned;
  take_steps(steps_planned, step.world(), inner);
  finish(under_way);
  step.commit([&] { apply(under_way); });
}

/// An attempt that failed has taken some or all of them. They count: only its average is done again.
void OuterTrainer::State::take_steps(int until, const Group& world, const Inner& inner) {
  for (; taken < until; ++taken) {
    const double begin = clock();
    const double used =
        inner({round * static_cast<std::uint64_t>(interval) + static_cast<std::uint64_t>(taken), world.rank(), world.size()});
    if (!(std::isfinite(used) && used >= 0))
      refuse(fmt::format("an inner step returned {} samples; they must be finite and not negative", used));
    seconds += clock() - begin;
    for (double& since : samples) since += used;
  }
}

/// Sends this rank's differences. It returns when they are on their way, except at the first average: it needs to know how many samples
/// there are, so that a narrow wire gets numbers of the size of the mean.
void OuterTrainer::State::start(UnderWay& under_way, Group& world) {
  const simd::FloatEnvironment environment;
  const double used = samples[static_cast<std::size_t>(in_turn.front())];
  if (taken > 0) seconds_per_step = seconds / taken;
  under_way.own = {used, seconds_per_step};
  under_way.reports.resize(static_cast<std::size_t>(world.size()));
  under_way.report = world.all_gather_async(ConstTensorView(&under_way.own, DType::f64, kReportNumbers),
                                            TensorView(under_way.reports.data(), DType::f64, kReportNumbers * under_way.reports.size()),
                                            {.stream = options.elastic.average.stream});
  const CheckpointValue* mean = trainer.state().find(kMeanSamples);
  under_way.expected_total = mean == nullptr ? total_samples(under_way) : std::get<double>(*mean) * world.size();
  AverageOptions average = options.elastic.average;
  average.communication_type = options.wire;
  for (const int index : in_turn) {
    native::Fragment& fragment = fragments[static_cast<std::size_t>(index)];
    auto& averages = *under_way.averages.emplace_back(std::make_unique<native::WorldAverages>(world, average, fragment.residuals));
    throw_if_failed(averages.averager.set_weight(used, under_way.expected_total));
    const Tree& differences = fragment.take_differences(used > 0);
    // A guest's call for an average of a tree begins with that (wasm/src/outer.ts).
    if (world.guests() > 0) native::require_same_tree(world, "OuterTrainer", differences, average.stream);
    for (const Leaf& leaf : differences) {
      throw_if_failed(averages.averager.add(leaf.values));
      averages.driver.drive(averages.averager);
    }
    averages.averager.start_open();
    averages.driver.drive(averages.averager);
  }
  sent = samples;
}

/// How many samples all ranks have used.
double OuterTrainer::State::total_samples(UnderWay& under_way) {
  under_way.report.wait();
  const simd::FloatEnvironment environment;
  double total = 0;
  for (const native::InnerReport& report : under_way.reports) total += report.samples;
  if (!(total > 0)) refuse("no rank has used a sample since the last average; the inner step returns how many it has used");
  return total;
}

/// Waits until the differences are averages of all ranks'.
void OuterTrainer::State::finish(UnderWay& under_way) {
  under_way.total = total_samples(under_way);
  for (auto& averages : under_way.averages) {
    averages->averager.close();
    averages->driver.drive(averages->averager);
  }
}

void OuterTrainer::State::apply(const UnderWay& under_way) {
  const simd::FloatEnvironment environment;
  Tree differences;
  const auto ranks = static_cast<double>(under_way.reports.size());
  for (const int index : in_turn) {
    native::Fragment& fragment = fragments[static_cast<std::size_t>(index)];
    if (ranks > 1 && under_way.total != under_way.expected_total) fragment.scale_differences(under_way.expected_total / under_way.total);
    for (const Leaf& leaf : fragment.differences()) differences.add(leaf.name, leaf.values);
  }
  optimizer.apply_gradients(differences, shared);
  trainer.state().set(kMeanSamples, under_way.total / ranks);
  for (const int index : in_turn) {
    const auto place = static_cast<std::size_t>(index);
    fragments[place].residuals.commit();
    fragments[place].adopt(under_way.overlaps ? options.mixing : 0);
    samples[place] -= sent[place];
  }
  if (options.by_speed) steps_planned = native::steps_for(interval, seconds_per_step, under_way.reports);
  begin_round(round + 1);
}

OuterTrainer::OuterTrainer(Group world, const Tree& parameters, OuterTrainerOptions options) {
  native::check_outer(parameters, options);
  state_ = std::make_unique<State>(std::move(world), parameters, std::move(options));
  state_->trainer.state_->is_outer = true;
}
OuterTrainer::~OuterTrainer() = default;

void OuterTrainer::run(std::uint64_t steps, const std::function<double(const InnerStep&)>& inner) {
  State& state = *state_;
  native::check_outer_steps(steps, state.options);
  if (!inner) refuse("the function of an inner step is empty");
  const std::uint64_t averages = steps / static_cast<std::uint64_t>(state.interval);
  // The trainer's samples are not used: each rank says how many it had.
  state.trainer.run({.steps = averages, .batch = 1}, [&](Step& step) { state.attempt(step, step.number() + 1 == averages, inner); });
}

const Tree& OuterTrainer::shared_parameters() const noexcept { return state_->shared; }
Checkpoint& OuterTrainer::state() noexcept { return state_->trainer.state(); }
const Group& OuterTrainer::world() const noexcept { return state_->trainer.world(); }
std::uint64_t OuterTrainer::averages() const noexcept { return state_->trainer.step(); }
std::uint64_t OuterTrainer::steps() const noexcept { return averages() * static_cast<std::uint64_t>(state_->interval); }

Tree OuterTrainer::fragment(int index) const {
  const auto count = static_cast<int>(state_->fragments.size());
  if (index < 0 || index >= count) refuse(fmt::format("there is no fragment {}; there are {}", index, count));
  return state_->fragments[static_cast<std::size_t>(index)].own();
}

}  // namespace ringlet
