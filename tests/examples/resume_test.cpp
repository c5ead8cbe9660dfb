#include <algorithm>
#include <catch2/catch.hpp>
#include <input_error.hpp>
#include <outer_training.hpp>
#include <trainer.hpp>

#include "folder.hpp"
#include "small_text.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace train_text;
using Catch::Matchers::Contains;
using ringlet::test::expect;

namespace {

constexpr int kSteps = 60;
constexpr int kHalf = 30;

Options options_for(Mode mode) {
  Options options = small_options(mode);
  options.steps = kSteps;
  return options;
}

/// Returns the losses of the steps from where training begins until `until`, with checkpoints as the options say.
std::vector<double> train_until(const Options& options, int ranks, int until = kSteps) {
  const Corpus corpus = small_corpus();
  std::vector<double> losses;
  ringlet::test::run_ranks(ranks, [&](ringlet::Group& group) {
    Trainer trainer(options, corpus, group);
    for (Act act = Act::beginning; act != Act::end && trainer.run().step() < until;) {
      act = trainer.advance();
      if (act == Act::loss_sum && group.rank() == 0) losses.push_back(trainer.run().loss());
    }
    if (until < kSteps) return;
    const std::vector<std::uint64_t>& hashes = trainer.run().hashes();
    expect(std::ranges::count(hashes, hashes[0]) == ranks, "the parameters are equal on all ranks");
  });
  return losses;
}

void save_half_way(Options options, int ranks, const Folder& folder) {
  options.checkpoint = folder.path();
  options.saves = true;
  options.checkpoint_every = kHalf;
  train_until(options, ranks, kHalf + 3);
}

std::vector<double> resume(Options options, int ranks, const Folder& folder) {
  options.checkpoint = folder.path();
  options.saves = true;
  options.resume = true;
  return train_until(options, ranks);
}

void check_second_half(const std::vector<double>& resumed, const std::vector<double>& whole) {
  REQUIRE(resumed.size() == kSteps - kHalf);
  for (std::size_t i = 0; i < resumed.size(); ++i) CHECK(resumed[i] == Approx(whole[kHalf + i]).epsilon(2e-5));
}

/// Returns the error of an attempt to resume.
std::string refusal(const Options& options, const Folder& folder, const Corpus& corpus = small_corpus()) {
  Options resumed = options;
  resumed.checkpoint = folder.path();
  resumed.saves = true;
  resumed.resume = true;
  std::string text;
  ringlet::test::run_ranks(2, [&](ringlet::Group& group) {
    Trainer trainer(resumed, corpus, group);
    try {
      trainer.advance();
    } catch (const InputError& error) {
      if (group.rank() == 0) text = error.what();
    }
  });
  return text;
}

}  // namespace

TEST_CASE("what four ranks saved, three go on with, in every mode") {
  const Mode mode = GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard);
  CAPTURE(name_of(mode));
  const Folder folder;
  save_half_way(options_for(mode), 4, folder);
  check_second_half(resume(options_for(mode), 3, folder), train_until(options_for(mode), 4));
}

TEST_CASE("a run goes on in another mode") {
  const Mode from = GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard);
  const std::vector<double> whole = train_until(options_for(from), 1);
  for (const Mode to : {Mode::data_parallel, Mode::fsdp, Mode::fully_shard}) {
    if (to == from) continue;
    CAPTURE(name_of(from), name_of(to));
    const Folder folder;
    save_half_way(options_for(from), 2, folder);
    check_second_half(resume(options_for(to), 1, folder), whole);
  }
}

TEST_CASE("the last step is saved too, and there is nothing left to do then") {
  const Folder folder;
  Options options = options_for(Mode::fsdp);
  options.checkpoint = folder.path();
  options.saves = true;
  train_until(options, 2);
  CHECK(resume(options_for(Mode::fsdp), 2, folder).empty());
}

TEST_CASE("a checkpoint that does not fit is refused with what is different") {
  const Folder folder;
  const Options saved = options_for(Mode::fully_shard);
  CHECK_THAT(refusal(saved, folder), Contains("no checkpoint in " + folder.path().string()) && Contains("--resume"));
  save_half_way(saved, 2, folder);
  CHECK(refusal(saved, folder).empty());

  Options other = saved;
  other.steps = 70;
  CHECK_THAT(refusal(other, folder), Contains("step 30") && Contains("--steps 60, not 70"));
  other = saved;
  other.shape.heads = 4;
  CHECK_THAT(refusal(other, folder), Contains("--heads 2, not 4"));
  other = saved;
  other.shape.width = 24;
  CHECK_THAT(refusal(other, folder), Contains("another model") && Contains("--width") && Contains("(256, 24)"));
  CHECK_THAT(refusal(saved, folder, small_corpus("another text, of which the checkpoint's parameters know nothing at all. ")),
             Contains("another text"));
}

TEST_CASE("a new run does not mix its checkpoints with another's") {
  const Folder folder;
  save_half_way(options_for(Mode::data_parallel), 1, folder);
  CHECK_THROWS_WITH(save_half_way(options_for(Mode::data_parallel), 1, folder), Contains("already, step-00000030") && Contains("--resume"));
}

namespace {

/// Trains with averages of parameters every five steps; returns the error of an attempt that is refused.
std::string train_with_inner_steps(const Folder& folder, double momentum, bool resumes) {
  Options options = options_for(Mode::data_parallel);
  options.inner_steps = 5;
  options.outer_momentum = momentum;
  options.checkpoint = folder.path();
  options.saves = true;
  options.checkpoint_every = kHalf;
  options.resume = resumes;
  const Corpus corpus = small_corpus();
  std::string text;
  ringlet::test::run_ranks(2, [&](ringlet::Group& group) {
    try {
      OuterTraining training(options, corpus, group, false, {});
      training.run([](const ringlet::InnerStep&, double) {});
    } catch (const InputError& error) {
      if (group.rank() == 0) text = error.what();
    }
  });
  return text;
}

}  // namespace

TEST_CASE("a checkpoint that was saved with inner steps is told from one without, in both directions") {
  const Folder with, without, no_momentum, empty;
  save_half_way(options_for(Mode::data_parallel), 2, without);
  CHECK(train_with_inner_steps(with, 0.5, false).empty());
  CHECK(train_with_inner_steps(no_momentum, 0, false).empty());
  CHECK(train_with_inner_steps(with, 0.5, true).empty());
  for (const Mode mode : {Mode::data_parallel, Mode::fsdp, Mode::fully_shard})
    CHECK_THAT(refusal(options_for(mode), with), Contains("was saved with --inner-steps") && Contains("resume with it"));
  CHECK_THAT(train_with_inner_steps(without, 0.5, true), Contains("was saved without --inner-steps") && Contains("resume as it was saved"));
  CHECK_THAT(train_with_inner_steps(without, 0, true), Contains("was saved without --inner-steps (") && Contains("resume without it"));
  CHECK_THAT(train_with_inner_steps(no_momentum, 0.5, true), Contains("or with --outer-momentum 0"));
  CHECK_THAT(train_with_inner_steps(with, 0, true), Contains("was saved with another --outer-momentum than 0"));
  CHECK_THAT(train_with_inner_steps(empty, 0.5, true), Contains("no checkpoint in " + empty.path().string()));
  // Averages give the folders their numbers.
  CHECK_THAT(train_with_inner_steps(with, 0.5, false), Contains("already, step-00000012"));
}
