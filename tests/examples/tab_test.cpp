#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <input_error.hpp>
#include <memory>
#include <outer_training.hpp>
#include <ringlet/ringlet.hpp>
#include <shared_inputs.hpp>
#include <string>
#include <tab_trainer.hpp>
#include <trainer.hpp>
#include <vector>

#include "folder.hpp"
#include "small_text.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

// Tests of a tab's trainer beside native ones. Blocking calls take the part of its group.

using namespace train_text;
using ringlet::test::expect;

namespace {

struct Destroy {
  void operator()(TrainText* trainer) const { train_text_destroy(trainer); }
};
using Tab = std::unique_ptr<TrainText, Destroy>;

struct TabRecord {
  std::vector<double> losses;
  std::vector<int> shares;
  double validation_loss = 0;
  double tokens = 0;
  std::string hash, problem;
  std::size_t written = 0;
};

void carry_out(ringlet::Group& group, std::int32_t kind, const TrainTextExchange& exchange) {
  const auto dtype = static_cast<ringlet::DType>(exchange.dtype);
  const ringlet::ConstTensorView input(exchange.input, dtype, exchange.input_count);
  const ringlet::TensorView output(exchange.output, dtype, exchange.output_count);
  const ringlet::CallOptions call{.stream = {static_cast<std::uint16_t>(exchange.stream)}};
  if (kind == TRAIN_TEXT_BROADCAST) group.broadcast(output, 0, call);
  if (kind == TRAIN_TEXT_ALL_SUM) group.all_reduce(ringlet::ReduceOp::sum, input, output, call);
  if (kind == TRAIN_TEXT_ALL_GATHER) group.all_gather(input, output, call);
}

std::optional<ringlet::Wire> wire_of(std::int32_t number) {
  constexpr std::int32_t kFirst = ringlet::kFirstBlockFormat;
  if (number >= kFirst) return wire_in_blocks(static_cast<ringlet::BlockFormat>(number - kFirst));
  if (number >= 0) return ringlet::Wire(static_cast<ringlet::DType>(number));
  return std::nullopt;
}

void carry_out(ringlet::Group& group, const TrainTextAverage& average) {
  ringlet::Tree tree;
  for (std::size_t i = 0; i < average.leaves; ++i)
    tree.add(average.names[i], ringlet::TensorView(average.values[i], ringlet::DType::f32, average.counts[i]));
  ringlet::AverageOptions options{.all_reduce_size = static_cast<std::int64_t>(average.all_reduce_size)};
  options.communication_type = wire_of(average.wire);
  if (average.weight >= 0) options.weight = average.weight;
  ringlet::average_gradients(group, tree, options);
}

void train_with_few_averages(ringlet::Group& group, TrainText* tab, int slice, TabRecord& record) {
  const TrainTextOuter& outer = *train_text_outer(tab);
  ringlet::Tree parameters;
  const std::size_t* extents = outer.extents;
  for (std::size_t i = 0; i < outer.leaves; extents += outer.axes[i++]) {
    const std::vector<std::int64_t> shape(extents, extents + outer.axes[i]);
    parameters.add(outer.names[i], ringlet::TensorView(outer.values[i], ringlet::DType::f32, ringlet::Shape(std::span(shape))));
  }
  ringlet::OuterTrainerOptions options{.inner_steps = outer.inner_steps,
                                       .fragments = outer.fragments,
                                       .overlap = outer.overlap,
                                       .by_speed = outer.by_speed != 0,
                                       .learning_rate = outer.learning_rate,
                                       .momentum = outer.momentum,
                                       .wire = wire_of(outer.wire)};
  options.elastic.average.all_reduce_size = static_cast<std::int64_t>(outer.all_reduce_size);
  ringlet::OuterTrainer trainer(group, parameters, options);
  const double* numbers = train_text_numbers(tab);
  trainer.run(static_cast<std::uint64_t>(numbers[TRAIN_TEXT_STEPS]), [&](const ringlet::InnerStep& step) {
    train_text_begin_step(tab, static_cast<double>(step.number), step.rank, step.ranks);
    while (train_text_next(tab) == TRAIN_TEXT_COMPUTE) train_text_compute(tab, slice);
    expect(train_text_next(tab) == TRAIN_TEXT_OUTER, train_text_problem(tab));
    train_text_numbers(tab);
    expect(numbers[TRAIN_TEXT_STEP] == static_cast<double>(step.number + 1), "the step");
    record.losses.push_back(numbers[TRAIN_TEXT_LOSS]);
    record.shares.push_back(static_cast<int>(numbers[TRAIN_TEXT_SHARE]));
    return numbers[TRAIN_TEXT_SHARE];
  });
  expect(numbers[TRAIN_TEXT_WAITING_SHARE] >= 0 && numbers[TRAIN_TEXT_WAITING_SHARE] < 1, "how long it has waited");
}

TabRecord train_in_tab(ringlet::Group& group, int slice) {
  const Tab tab(train_text_create(group.rank(), group.size()));
  TabRecord record;
  for (;;) {
    const std::int32_t next = train_text_next(tab.get());
    if (next == TRAIN_TEXT_END || next == TRAIN_TEXT_FAILED) break;
    if (next == TRAIN_TEXT_COMPUTE) {
      train_text_compute(tab.get(), slice);
      record.written = train_text_write(tab.get(), 1);
      continue;
    }
    if (next == TRAIN_TEXT_AVERAGE) {
      record.shares.push_back(static_cast<int>(train_text_numbers(tab.get())[TRAIN_TEXT_SHARE]));
      carry_out(group, *train_text_average(tab.get()));
    } else if (next == TRAIN_TEXT_OUTER) {
      train_with_few_averages(group, tab.get(), slice, record);
    } else {
      carry_out(group, next, *train_text_exchange(tab.get()));
    }
    train_text_done(tab.get());
    const double* numbers = train_text_numbers(tab.get());
    const auto step = static_cast<std::size_t>(numbers[TRAIN_TEXT_STEP]);
    if (numbers[TRAIN_TEXT_AVERAGE_EVERY] == 0 && step > record.losses.size()) record.losses.push_back(numbers[TRAIN_TEXT_LOSS]);
  }
  const double* numbers = train_text_numbers(tab.get());
  record.validation_loss = numbers[TRAIN_TEXT_VALIDATION_LOSS];
  record.tokens = numbers[TRAIN_TEXT_TOKENS];
  record.hash = train_text_hash(tab.get());
  record.problem = train_text_problem(tab.get());
  return record;
}

struct MixedRecord {
  std::vector<double> losses;
  double validation_loss = 0;
  std::string hash;
  std::vector<TabRecord> tabs;
  std::vector<std::vector<int>> counts;
};

MixedRecord train_mixed(Options options, int natives, int tabs, int slice) {
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  set_guests(options, tabs);
  MixedRecord record;
  record.tabs.resize(static_cast<std::size_t>(tabs));
  ringlet::test::run_ranks(natives + tabs, [&](ringlet::Group& group) {
    if (group.rank() >= natives) {
      record.tabs[static_cast<std::size_t>(group.rank() - natives)] = train_in_tab(group, slice);
      return;
    }
    const SharedInputs inputs = share_inputs(group, options, [&] { return text; });
    Trainer trainer(inputs.options, inputs.corpus, group);
    for (Act act = Act::beginning; act != Act::end;) {
      act = trainer.advance();
      if (group.rank() != 0 || act != Act::loss_sum) continue;
      record.losses.push_back(trainer.run().loss());
      record.counts.push_back(trainer.run().counts());
    }
    if (group.rank() != 0) return;
    record.validation_loss = trainer.run().validation_loss();
    record.hash = in_hexadecimal(trainer.run().hashes()[0]);
  });
  return record;
}

}  // namespace

TEST_CASE("native ranks and tabs follow one native rank, whatever the slices") {
  Options options = small_options();
  options.communication_type = GENERATE(std::optional<ringlet::Wire>(), ringlet::Wire(ringlet::DType::bf16),
                                        wire_in_blocks(ringlet::BlockFormat::int8), wire_in_blocks(ringlet::BlockFormat::int4));
  // Large enough for blocks.
  if (options.communication_type && options.communication_type->blocks()) options.shape.width = 64;
  const bool exact = !options.communication_type;
  const MixedRecord alone = train_mixed(options, 1, 0, 1);
  const auto [natives, tabs, slice] = GENERATE(table<int, int, int>({{1, 1, 1}, {1, 2, 2}, {2, 2, 100}, {1, 3, 3}}));
  CAPTURE(natives, tabs, slice, exact);
  const MixedRecord run = train_mixed(options, natives, tabs, slice);
  if (exact) check_same(run.losses, alone.losses);
  CHECK(run.losses.back() < 0.8 * run.losses.front());
  for (std::size_t tab = 0; tab < run.tabs.size(); ++tab) {
    CAPTURE(tab, run.tabs[tab].problem);
    CHECK(run.tabs[tab].losses == run.losses);
    CHECK(run.tabs[tab].validation_loss == run.validation_loss);
    CHECK(run.tabs[tab].hash == run.hash);
    CHECK(run.tabs[tab].written > 0);
    int samples = 0;
    for (std::size_t step = 0; step < run.tabs[tab].shares.size(); ++step) samples += run.tabs[tab].shares[step];
    CHECK(run.tabs[tab].tokens == samples * options.shape.context);
  }
}

namespace {

struct OuterRecord {
  std::string hash;
  double validation_loss = 0;
  std::vector<TabRecord> tabs;
};

OuterRecord train_outer(Options options, int natives, int tabs, int slice) {
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  set_guests(options, tabs);
  OuterRecord record;
  record.tabs.resize(static_cast<std::size_t>(tabs));
  ringlet::test::run_ranks(natives + tabs, [&](ringlet::Group& group) {
    if (group.rank() >= natives) {
      record.tabs[static_cast<std::size_t>(group.rank() - natives)] = train_in_tab(group, slice);
      return;
    }
    const SharedInputs inputs = share_inputs(group, options, [&] { return text; });
    OuterTraining training(inputs.options, inputs.corpus, group, false, {});
    training.run([](const ringlet::InnerStep&, double) {});
    if (group.rank() != 0) return;
    record.hash = in_hexadecimal(training.parameter_hash());
    record.validation_loss = training.validate();
  });
  return record;
}

}  // namespace

TEST_CASE("native ranks and tabs that train alone between two averages do what as many native ranks do") {
  Options options = small_options();
  options.shares_follow_guests = false;
  options.inner_steps = 10;
  const int variant = GENERATE(0, 1, 2);
  if (variant > 0) {
    options.fragments = 2;
    options.overlap = 2;
    options.communication_type = ringlet::Wire(ringlet::DType::bf16);
  }
  if (variant > 1) {
    options.shape.width = 64;  // large enough for blocks
    options.communication_type = wire_in_blocks(ringlet::BlockFormat::int8);
  }
  const auto [natives, tabs, slice] = GENERATE(table<int, int, int>({{1, 1, 100}, {2, 2, 100}, {1, 2, 1}}));
  CAPTURE(variant, natives, tabs, slice);
  const OuterRecord expected = train_outer(options, natives + tabs, 0, 1);
  const OuterRecord run = train_outer(options, natives, tabs, slice);
  // Slices add gradients up in another order.
  if (slice == 100) CHECK(run.hash == expected.hash);
  CHECK(run.validation_loss == Approx(expected.validation_loss).epsilon(0.02));
  for (const TabRecord& tab : run.tabs) {
    CAPTURE(tab.problem);
    CHECK(tab.hash == run.hash);
    CHECK(tab.losses.size() == static_cast<std::size_t>(options.steps));
    CHECK(tab.losses.back() < 0.9 * tab.losses.front());
    int samples = 0;
    for (const int share : tab.shares) samples += share;
    CHECK(tab.tokens == samples * options.shape.context);
  }
}

TEST_CASE("a tab that trains alone says where its loss is no number") {
  Options options = small_options();
  options.shares_follow_guests = false;
  options.inner_steps = 10;
  options.learning_rate = 1e30;
  options.clip_norm = 0;
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  set_guests(options, 1);
  const Tab tab(train_text_create(1, 2));
  Record record = encode({.settings = options, .text_bytes = text.size()});
  std::memcpy(train_text_exchange(tab.get())->output, record.data(), record.size());
  train_text_done(tab.get());
  std::memcpy(train_text_exchange(tab.get())->output, text.data(), text.size());
  train_text_done(tab.get());
  REQUIRE(train_text_next(tab.get()) == TRAIN_TEXT_OUTER);
  CHECK(train_text_numbers(tab.get())[TRAIN_TEXT_AVERAGE_EVERY] == 10);
  for (int step = 0; step < 5 && train_text_next(tab.get()) == TRAIN_TEXT_OUTER; ++step) {
    train_text_begin_step(tab.get(), step, 1, 2);
    while (train_text_next(tab.get()) == TRAIN_TEXT_COMPUTE) train_text_compute(tab.get(), 100);
  }
  CHECK(train_text_next(tab.get()) == TRAIN_TEXT_FAILED);
  CHECK_THAT(train_text_problem(tab.get()), Catch::Contains("the loss of step") && Catch::Contains("--outer-lr"));
}

TEST_CASE("a tab without a sequence takes part") {
  Options options = small_options();
  options.batch = 1;
  options.steps = 15;
  const MixedRecord alone = train_mixed(options, 1, 0, 1);
  const MixedRecord run = train_mixed(options, 1, 2, 1);
  check_same(run.losses, alone.losses);
  CHECK(run.tabs[1].hash == run.hash);
}

TEST_CASE("beside tabs rank 0 saves alone, and a run goes on from there") {
  const Folder folder;
  Options options = small_options();
  const MixedRecord whole = train_mixed(options, 1, 0, 1);
  options.checkpoint = folder.path();
  options.saves = true;
  options.checkpoint_every = 20;
  train_mixed(options, 2, 1, 3);
  REQUIRE(std::filesystem::remove_all(folder.path() / "step-00000050") > 0);
  options.resume = true;
  const MixedRecord rest = train_mixed(options, 2, 2, 3);
  check_same(rest.losses, {whole.losses.begin() + 40, whole.losses.end()});
  CHECK(rest.tabs[1].hash == rest.hash);
}

TEST_CASE("a tab says why there is no run") {
  Options options = small_options(Mode::fsdp);
  std::string problem;
  ringlet::test::run_ranks(2, [&](ringlet::Group& group) {
    if (group.rank() == 1) {
      problem = train_in_tab(group, 1).problem;
      return;
    }
    Options own = options;
    set_guests(own, 1);
    std::string text;
    try {
      share_inputs(group, own, [] { return Bytes(1000, 'a'); });
    } catch (const InputError& error) {
      text = error.what();
    }
    expect(!text.empty(), "rank 0 refuses");
  });
  CHECK_THAT(problem, Catch::Contains("--fsdp needs native ranks only"));
}

TEST_CASE("a checkpoint that does not fit ends the tab, too") {
  const Folder folder;
  Options options = small_options();
  options.checkpoint = folder.path() / "none";
  options.saves = true;
  options.resume = true;
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  set_guests(options, 1);
  std::string problem;
  ringlet::test::run_ranks(3, [&](ringlet::Group& group) {
    if (group.rank() == 2) {
      problem = train_in_tab(group, 1).problem;
      return;
    }
    const SharedInputs inputs = share_inputs(group, options, [&] { return text; });
    Trainer trainer(inputs.options, inputs.corpus, group);
    std::string own;
    try {
      trainer.advance();
    } catch (const std::runtime_error& error) {
      own = error.what();
    }
    expect(own.find(group.rank() == 0 ? "no checkpoint in" : "rank 0 cannot begin") != std::string::npos, own);
  });
  CHECK_THAT(problem, Catch::Contains("rank 0 cannot begin"));
}

TEST_CASE("a tab without settings has nothing to give") {
  const Tab tab(train_text_create(1, 2));
  CHECK(train_text_next(tab.get()) == TRAIN_TEXT_BROADCAST);
  CHECK(train_text_average(tab.get()) == nullptr);
  CHECK(train_text_outer(tab.get()) == nullptr);
  train_text_begin_step(tab.get(), 0, 1, 2);
  CHECK(train_text_next(tab.get()) == TRAIN_TEXT_BROADCAST);
  CHECK(train_text_counts(tab.get()) == nullptr);
  CHECK(train_text_write(tab.get(), 5) == 0);
  CHECK(std::string(train_text_hash(tab.get())).empty());
  CHECK(train_text_numbers(tab.get())[TRAIN_TEXT_RANKS] == 2);
  const TrainTextExchange* record = train_text_exchange(tab.get());
  REQUIRE(record != nullptr);
  CHECK(record->output_count == kRecordBytes);
  // The record is all zeros, which no rank 0 of this program sends.
  train_text_done(tab.get());
  CHECK(train_text_next(tab.get()) == TRAIN_TEXT_FAILED);
  CHECK_THAT(train_text_problem(tab.get()), Catch::Contains("another program"));
}
