#include <algorithm>
#include <catch2/catch.hpp>
#include <input_error.hpp>
#include <modes.hpp>
#include <trainer.hpp>

#include "small_text.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace train_text;
using ringlet::test::expect;

namespace {

/// The results of a training, as rank 0 saw them.
struct Outcome {
  std::vector<double> losses;
  double validation_loss = 0;
  std::string sample;
  std::vector<std::size_t> parameter_bytes, optimizer_bytes;  // by rank
  std::vector<std::vector<int>> counts;                       // by step
};

/// Trains and returns the results. `slowness` is how many seconds a sample counts as, by rank; empty: the time is measured.
Outcome train_modes(const Options& options, int ranks, const std::vector<double>& slowness = {}) {
  const Corpus corpus = small_corpus();
  Outcome outcome;
  outcome.parameter_bytes.resize(static_cast<std::size_t>(ranks));
  outcome.optimizer_bytes.resize(static_cast<std::size_t>(ranks));
  ringlet::test::run_ranks(ranks, [&](ringlet::Group& group) {
    Trainer trainer(options, corpus, group);
    const auto rank = static_cast<std::size_t>(group.rank());
    if (!slowness.empty()) trainer.run().keep_time_by([&](int samples, double) { return samples * slowness[rank]; });
    for (Act act = Act::beginning; act != Act::end;) {
      act = trainer.advance();
      if (rank != 0 || act != Act::loss_sum) continue;
      outcome.losses.push_back(trainer.run().loss());
      outcome.counts.push_back(trainer.run().counts());
    }
    const std::vector<std::uint64_t>& hashes = trainer.run().hashes();
    expect(std::ranges::count(hashes, hashes[0]) == ranks, "the parameters are equal on all ranks");
    outcome.parameter_bytes[rank] = trainer.store().parameter_bytes();
    outcome.optimizer_bytes[rank] = trainer.store().optimizer_bytes();
    if (rank == 0) {
      outcome.validation_loss = trainer.run().validation_loss();
      outcome.sample = trainer.sample();
    }
  });
  return outcome;
}

std::size_t sum_of(const std::vector<std::size_t>& bytes) {
  std::size_t sum = 0;
  for (const std::size_t rank : bytes) sum += rank;
  return sum;
}

}  // namespace

TEST_CASE("the loss falls on a small text") {
  Options options = small_options();
  options.steps = 500;
  const Outcome run = train_modes(options, 1);
  CHECK(run.losses.front() > 4);
  CHECK(run.losses.back() < 0.6 * unigram_entropy(small_corpus().text()));
}

TEST_CASE("every mode follows one rank that has the whole batch and all parameters") {
  const Outcome alone = train_modes(small_options(), 1);
  const Mode mode = GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard);
  const int ranks = GENERATE(1, 2, 3, 4);
  CAPTURE(name_of(mode), ranks);
  const Outcome run = train_modes(small_options(mode), ranks);
  REQUIRE(run.losses.size() == alone.losses.size());
  for (std::size_t step = 0; step < alone.losses.size(); ++step) CHECK(run.losses[step] == Approx(alone.losses[step]).epsilon(2e-5));
  CHECK(run.validation_loss == Approx(alone.validation_loss).epsilon(2e-5));
  CHECK(run.sample == alone.sample);

  const bool shards_parameters = mode == Mode::fully_shard;
  const bool shards_state = mode != Mode::data_parallel;
  const std::size_t all = alone.parameter_bytes[0];
  const auto copies = static_cast<std::size_t>(ranks);
  CHECK(sum_of(run.parameter_bytes) == (shards_parameters ? 1 : copies) * all);
  CHECK(sum_of(run.optimizer_bytes) == (shards_state ? 1 : copies) * 2 * all);
  if (shards_parameters) CHECK(static_cast<double>(run.parameter_bytes[0]) < 1.1 * static_cast<double>(all) / ranks);
}

TEST_CASE("the gradients' norm is clipped alike in every mode, or not at all") {
  const double clip_norm = GENERATE(0.0, 0.05);
  const auto losses_of = [&](Mode mode, int ranks) {
    Options options = small_options(mode);
    options.clip_norm = clip_norm;
    options.steps = 20;
    return train_modes(options, ranks).losses;
  };
  const std::vector<double> plain = losses_of(Mode::data_parallel, 1);
  for (const Mode mode : {Mode::data_parallel, Mode::fsdp, Mode::fully_shard}) {
    CAPTURE(clip_norm, name_of(mode));
    const std::vector<double> clipped = losses_of(mode, 2);
    for (std::size_t step = 0; step < plain.size(); ++step) CHECK(clipped[step] == Approx(plain[step]).epsilon(2e-5));
  }
}

TEST_CASE("a fully sharded rank has no full parameters outside of its passes") {
  const Corpus corpus = small_corpus();
  const Options options = small_options(Mode::fully_shard);
  ringlet::test::run_ranks(2, [&](ringlet::Group& group) {
    Transformer<float> model(options.shape, options.seed);
    const auto store = make_parameter_store(options, model, group);
    expect(store->set_group(group).empty(), "nothing is lost");
    const auto with_values = [&] { return std::ranges::count_if(model.modules(), [](const auto& module) { return module.has_values(); }); };
    const Batch batch = training_batch(corpus, options.shape.context, 1, 0, {0, 4});
    expect(with_values() == 0, "before");
    model.forward(batch, *store);
    expect(with_values() == 1, "the last module stays for the backward pass");
    model.backward(batch, *store);
    expect(with_values() == 1, "one module at a time");
    store->average();
    store->apply_gradients();
    expect(with_values() == 0, "after");
  });
}

TEST_CASE("measured shares follow the speeds in every mode, and the losses one rank that has the whole batch") {
  const Outcome alone = train_modes(small_options(), 1);
  const Mode mode = GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard);
  CAPTURE(name_of(mode));
  Options options = small_options(mode);
  options.shares = Shares::measured;
  const Outcome run = train_modes(options, 3, {1e-3, 4e-3, 1e-3});
  CHECK(run.counts[0] == std::vector<int>{4, 3, 3});
  CHECK(run.counts[1] == std::vector<int>{5, 1, 4});
  CHECK(run.counts[49] == std::vector<int>{5, 1, 4});
  REQUIRE(run.losses.size() == alone.losses.size());
  for (std::size_t step = 0; step < alone.losses.size(); ++step) CHECK(run.losses[step] == Approx(alone.losses[step]).epsilon(2e-5));
  CHECK(run.validation_loss == Approx(alone.validation_loss).epsilon(2e-5));
}

TEST_CASE("ranks without any sequence take part in every mode") {
  Options options = small_options();
  options.batch = 2;
  options.steps = 20;
  const Outcome alone = train_modes(options, 1);
  options.mode = GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard);
  CAPTURE(name_of(options.mode));
  options.shares = Shares::measured;
  const Outcome run = train_modes(options, 4);
  for (std::size_t step = 0; step < alone.losses.size(); ++step) {
    CHECK(std::ranges::count(run.counts[step], 0) >= 2);
    CHECK(run.losses[step] == Approx(alone.losses[step]).epsilon(2e-5));
  }
}

TEST_CASE("ranks whose parameters differ are found at the next comparison, and named") {
  const Corpus corpus = small_corpus();
  Options options = small_options();
  options.check_every = 5;
  const int wrong = GENERATE(0, 1, 2);
  CAPTURE(wrong);
  ringlet::test::run_ranks(3, [&](ringlet::Group& group) {
    Trainer trainer(options, corpus, group);
    std::string problem;
    int compared = 0;
    try {
      for (Act act = Act::beginning; act != Act::end;) {
        act = trainer.advance();
        if (act == Act::hashes) compared = trainer.run().steps_compared();
        if (act == Act::apply && trainer.run().step() == 7 && group.rank() == wrong) trainer.store().values()[3] += 1e-6F;
      }
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
    expect(compared == 5, "the parameters were equal after 5 steps");
    expect(problem.find("after 10 steps the parameters of rank " + std::to_string(wrong) + " (") == 0, problem);
  });
}
