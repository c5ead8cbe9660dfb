#include "tab_trainer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate.hpp"
#include "hashes.hpp"
#include "replica.hpp"
#include "run.hpp"
#include "tab_outer.hpp"

namespace train_text {

/// The part of a trainer that exists once the settings and the text have come.
struct Training {
  Training(const Settings& settings, Bytes text, int rank, int ranks)
      : corpus(std::move(text), settings.shape.context),
        model(settings.shape, settings.seed),
        replica(settings, model),
        run(settings, corpus, rank, ranks, model, replica),
        outer(settings, corpus, model, replica) {}

  Corpus corpus;
  Transformer<float> model;
  SlicedReplica replica;
  Run run;         // unless the ranks train alone between two averages
  TabOuter outer;  // if they do
};

namespace {

// This counts parameters, gradients, their sums, two values of the optimizer, and room for activations.
constexpr double kBytesPerParameter = 6 * sizeof(float);
constexpr double kMaxBytes = 1.5 * (1U << 30);

std::string problem_of_size(std::size_t parameters) {
  const double bytes = kBytesPerParameter * static_cast<double>(parameters);
  if (bytes <= kMaxBytes) return {};
  return "a browser has no room for a model of " + std::to_string(parameters) + " parameters: start a smaller one";
}

std::int32_t kind_of(Exchange::Kind kind) {
  switch (kind) {
    case Exchange::Kind::broadcast:
      return TRAIN_TEXT_BROADCAST;
    case Exchange::Kind::all_sum:
      return TRAIN_TEXT_ALL_SUM;
    case Exchange::Kind::all_gather:
      break;
  }
  return TRAIN_TEXT_ALL_GATHER;
}

}  // namespace
}  // namespace train_text

using namespace train_text;

/// What a trainer receives, in this order, before it takes part in the run: the record, and the bytes it announces; in a run that has begun
/// already, see Trainer::settle(), what the others have. Where ranks train alone between two averages it begins with `outer`, and ends with
/// the comparison of the hashes.
enum class Step : std::uint8_t { record, body, agreement, lacking, committed, parameters, state, run, outer, hashes, end };

struct TrainText {
  TrainText(int its_rank, int its_ranks) : rank(its_rank), ranks(its_ranks) { prepare(); }

  void compute(int samples);
  void done();
  void begin_step(double number, int its_rank, int its_ranks);
  const double* refresh_numbers();
  bool has_compared() const { return is_outer() ? step_ == Step::end : training && training->run.steps_compared() >= 0; }
  std::uint64_t own_hash() const { return is_outer() ? training->outer.own_end().hash : training->run.own_hash(); }

  int rank;
  int ranks;
  std::int32_t next = TRAIN_TEXT_BROADCAST;
  std::string problem;
  TrainTextExchange exchange{};
  TrainTextAverage average{};
  std::unique_ptr<Training> training;
  Writer writer{"\n"};
  std::array<double, TRAIN_TEXT_NUMBERS> numbers{};
  std::string hash;

 private:
  void take_record();
  void take_body();
  void begin_run();
  void done_in_run();
  void prepare();
  void set_exchange(std::int32_t kind, ringlet::ConstTensorView input, ringlet::TensorView output, std::uint32_t stream = 0);
  void prepare_entry();
  void prepare_run();
  void prepare_average();
  void prepare_outer();
  bool is_outer() const { return announcement_ && announcement_->settings.inner_steps > 0; }

  Record record_{};
  std::optional<Announcement> announcement_;
  Bytes body_;
  TabLeaves leaves_;
  Step step_ = Step::record;
  bool agreed_ = false;  // on the step under way
  std::int32_t lacking_ = 1;
  std::int64_t committed_ = -1;
  std::size_t next_leaf_ = 0;  // of the optimizer's state
  int steps_done_ = 0;
  int validations_ = 0;
  double tokens_ = 0;
};

void TrainText::compute(int samples) {
  if (step_ == Step::outer) {
    training->outer.compute(std::max(samples, 1));
    problem = training->outer.problem();
    return prepare();
  }
  Run& run = training->run;
  const Act act = run.act();
  const int share = run.share();
  if (!run.work(std::max(samples, 1))) return;
  if (act == Act::apply) ++steps_done_, agreed_ = false;
  if (act == Act::gradients) tokens_ += static_cast<double>(share) * run.settings().shape.context;
  prepare();
}

void TrainText::done() {
  switch (step_) {
    case Step::record:
      take_record();
      step_ = Step::body;
      break;
    case Step::body:
      take_body();
      step_ = announcement_->elastic ? Step::agreement : is_outer() ? Step::outer : Step::run;
      break;
    case Step::agreement:
      step_ = is_outer() ? Step::outer : announcement_->running ? Step::lacking : Step::run;
      break;
    case Step::lacking:
      step_ = Step::committed;
      break;
    case Step::committed:
      if (committed_ < 0 || committed_ > training->run.settings().steps) problem = "rank 0 has no parameters to give to this rank";
      step_ = Step::parameters;
      break;
    case Step::parameters:
      step_ = Step::state;
      break;
    case Step::state:
      ++next_leaf_;
      break;
    case Step::run:
      done_in_run();
      break;
    case Step::outer:
      step_ = Step::hashes;
      break;
    case Step::hashes:
      problem = different_hashes(hashes_of(training->outer.all_ends()), training->run.settings().steps);
      step_ = Step::end;
      break;
    case Step::end:
      break;
  }
  if (step_ == Step::state && next_leaf_ == training->replica.whole_state().size()) begin_run();
  prepare();
}

void TrainText::begin_run() {
  training->run.follow(static_cast<int>(committed_));
  training->run.regroup(rank, ranks);
  steps_done_ = training->run.committed();
  step_ = Step::run;
}

void TrainText::done_in_run() {
  Run& run = training->run;
  const Act act = run.act();
  if (act == Act::apply) {
    agreed_ = true;
    return;
  }
  if (act == Act::average) {
    run.averaged();
  } else {
    problem = run.exchanged();
  }
  if (act == Act::beginning) steps_done_ = run.step();
  if (act == Act::validation_sum) ++validations_;
}

void TrainText::take_record() {
  Decoded decoded = decode(record_);
  problem = std::move(decoded.problem);
  if (!problem.empty()) return;
  announcement_ = decoded.announcement;
  body_.resize(announcement_->folder_bytes + static_cast<std::size_t>(announcement_->text_bytes));
}

void TrainText::take_body() {
  if (announcement_->refused) {
    problem.assign(body_.begin(), body_.end());
    return;
  }
  const Settings& settings = announcement_->settings;
  body_.erase(body_.begin(), body_.begin() + announcement_->folder_bytes);
  if (settings.mode != Mode::data_parallel)
    problem = "browsers take part in data-parallel training only, and this is " + std::string(name_of(settings.mode));
  if (problem.empty()) problem = problem_of_text(body_.size(), settings.shape.context);
  if (problem.empty()) problem = problem_of_size(Transformer<float>(settings.shape, settings.seed).parameter_count());
  if (problem.empty()) training = std::make_unique<Training>(settings, std::exchange(body_, {}), rank, ranks);
}

void TrainText::prepare() {
  if (!problem.empty())
    next = TRAIN_TEXT_FAILED;
  else if (step_ == Step::run)
    prepare_run();
  else if (step_ >= Step::outer)
    prepare_outer();
  else
    prepare_entry();
}

void TrainText::set_exchange(std::int32_t kind, ringlet::ConstTensorView input, ringlet::TensorView output, std::uint32_t stream) {
  next = kind;
  exchange = {input.data(), input.count(), output.data(), output.count(), static_cast<std::uint32_t>(output.dtype()), stream};
}

void TrainText::prepare_entry() {
  const auto receive = [this](ringlet::TensorView values) { set_exchange(TRAIN_TEXT_BROADCAST, values, values); };
  const auto bytes = [](std::span<std::byte> all) { return ringlet::TensorView(all.data(), ringlet::DType::u8, all.size()); };
  switch (step_) {
    case Step::record:
      return receive(bytes(record_));
    case Step::body:
      return receive(bytes(std::as_writable_bytes(std::span(body_))));
    case Step::agreement:
      next = TRAIN_TEXT_AGREE;
      return;
    case Step::lacking: {
      const ringlet::TensorView lacking(&lacking_, ringlet::DType::i32, 1);
      return set_exchange(TRAIN_TEXT_ALL_SUM, lacking, lacking);
    }
    case Step::committed:
      return receive({&committed_, ringlet::DType::i64, 1});
    case Step::parameters:
      return receive(training->replica.values());
    case Step::state:
      return receive(training->replica.whole_state()[next_leaf_].values);
    default:
      return;
  }
}

void TrainText::prepare_run() {
  Run& run = training->run;
  // A browser saves nothing, and writes text only on request.
  while (run.act() == Act::checkpoint || run.act() == Act::sample) run.pass();
  if (is_exchange(run.act())) {
    const Exchange wanted = run.exchange();
    set_exchange(kind_of(wanted.kind), wanted.input, wanted.output, wanted.stream);
  } else if (run.act() == Act::apply && announcement_->elastic && !agreed_) {
    next = TRAIN_TEXT_AGREE;
  } else if (run.act() == Act::average) {
    next = TRAIN_TEXT_AVERAGE;
    prepare_average();
    run.begin_average();
  } else {
    next = run.act() == Act::end ? TRAIN_TEXT_END : TRAIN_TEXT_COMPUTE;
  }
}

void TrainText::prepare_outer() {
  TabOuter& outer = training->outer;
  next = outer.is_in_step() ? TRAIN_TEXT_COMPUTE : TRAIN_TEXT_OUTER;
  if (step_ == Step::end) next = TRAIN_TEXT_END;
  if (step_ != Step::hashes) return;
  outer.end(ranks);
  set_exchange(TRAIN_TEXT_ALL_GATHER, {&outer.own_end(), ringlet::DType::u64, kEndNumbers},
               {outer.all_ends().data(), ringlet::DType::u64, kEndNumbers * outer.all_ends().size()});
}

void TrainText::begin_step(double number, int its_rank, int its_ranks) {
  training->outer.begin_step(static_cast<std::uint64_t>(number), its_rank, its_ranks);
  prepare();
}

void TrainText::prepare_average() {
  const Run& run = training->run;
  leaves_ = TabLeaves(training->replica.parts());
  average = {.names = leaves_.names.data(),
             .values = leaves_.values.data(),
             .counts = leaves_.counts.data(),
             .leaves = leaves_.names.size(),
             .wire = number_of(run.settings().communication_type),
             .stream = 0,
             .all_reduce_size = static_cast<double>(run.settings().all_reduce_size),
             .weight = run.weighted() ? run.share() : -1.0};
}

const double* TrainText::refresh_numbers() {
  numbers[TRAIN_TEXT_RANKS] = ranks;
  numbers[TRAIN_TEXT_CHECKED_STEP] = -1;
  if (!training) return numbers.data();
  const Run& run = training->run;
  const Settings& settings = run.settings();
  numbers[TRAIN_TEXT_STEP] = steps_done_;
  numbers[TRAIN_TEXT_STEPS] = settings.steps;
  numbers[TRAIN_TEXT_LOSS] = run.loss();
  numbers[TRAIN_TEXT_VALIDATIONS] = validations_;
  numbers[TRAIN_TEXT_VALIDATION_LOSS] = run.validation_loss();
  numbers[TRAIN_TEXT_BATCH] = settings.batch;
  numbers[TRAIN_TEXT_SHARE] = run.share();
  numbers[TRAIN_TEXT_CONTEXT] = settings.shape.context;
  numbers[TRAIN_TEXT_PARAMETERS] = static_cast<double>(training->model.parameter_count());
  numbers[TRAIN_TEXT_TEXT_BYTES] = static_cast<double>(training->corpus.text().size());
  numbers[TRAIN_TEXT_TOKENS] = tokens_;
  numbers[TRAIN_TEXT_SECONDS] = run.training_seconds();
  numbers[TRAIN_TEXT_WAITING_SHARE] = run.waiting_share();
  numbers[TRAIN_TEXT_SECONDS_PER_SAMPLE] = run.seconds_per_sample();
  numbers[TRAIN_TEXT_CHECKED_STEP] = run.steps_compared();
  if (is_outer()) training->outer.set_numbers(numbers);
  if (is_outer() && has_compared()) numbers[TRAIN_TEXT_CHECKED_STEP] = settings.steps;
  return numbers.data();
}

TrainText* train_text_create(std::int32_t rank, std::int32_t ranks) { return new TrainText(rank, ranks); }

void train_text_destroy(TrainText* trainer) { delete trainer; }

std::int32_t train_text_next(const TrainText* trainer) { return trainer->next; }

std::int32_t train_text_compute(TrainText* trainer, std::int32_t samples) {
  if (trainer->next != TRAIN_TEXT_COMPUTE) return 1;
  const Act act = trainer->training->run.act();
  trainer->compute(samples);
  return trainer->next != TRAIN_TEXT_COMPUTE || trainer->training->run.act() != act ? 1 : 0;
}

const TrainTextExchange* train_text_exchange(TrainText* trainer) {
  const bool is_next = trainer->next >= TRAIN_TEXT_BROADCAST && trainer->next <= TRAIN_TEXT_ALL_GATHER;
  return is_next ? &trainer->exchange : nullptr;
}

const TrainTextAverage* train_text_average(TrainText* trainer) { return trainer->next == TRAIN_TEXT_AVERAGE ? &trainer->average : nullptr; }

const TrainTextOuter* train_text_outer(TrainText* trainer) {
  return trainer->next == TRAIN_TEXT_OUTER ? &trainer->training->outer.description() : nullptr;
}

void train_text_begin_step(TrainText* trainer, double number, std::int32_t rank, std::int32_t ranks) {
  if (trainer->next == TRAIN_TEXT_OUTER) trainer->begin_step(number, rank, ranks);
}

void train_text_done(TrainText* trainer) {
  const std::int32_t next = trainer->next;
  if ((next >= TRAIN_TEXT_BROADCAST && next <= TRAIN_TEXT_AVERAGE) || next == TRAIN_TEXT_AGREE || next == TRAIN_TEXT_OUTER) trainer->done();
}

const char* train_text_problem(const TrainText* trainer) { return trainer->problem.c_str(); }

const double* train_text_numbers(TrainText* trainer) { return trainer->refresh_numbers(); }

const std::int32_t* train_text_counts(const TrainText* trainer) {
  return trainer->training ? trainer->training->run.counts().data() : nullptr;
}

const char* train_text_hash(TrainText* trainer) {
  trainer->hash = trainer->has_compared() ? in_hexadecimal(trainer->own_hash()) : std::string();
  return trainer->hash.c_str();
}

std::size_t train_text_write(TrainText* trainer, std::int32_t bytes) {
  if (trainer->training) trainer->writer.write(trainer->training->model, trainer->training->replica, std::max(bytes, 0));
  return trainer->writer.written().size();
}

void train_text_write_anew(TrainText* trainer) { trainer->writer = Writer("\n"); }

const std::uint8_t* train_text_written(const TrainText* trainer) { return trainer->writer.written().data(); }
