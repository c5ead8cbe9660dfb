#include <catch2/catch.hpp>
#include <input_error.hpp>
#include <ringlet/checkpoint.hpp>
#include <shared_inputs.hpp>
#include <string>
#include <vector>

#include "folder.hpp"
#include "small_text.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace train_text;
using ringlet::test::expect;

namespace {

Bytes no_text() { throw std::logic_error("only rank 0 reads a text"); }

/// Checks the reason for the refusal, which every rank gets.
void check_refusal(const Options& options, Bytes text, const std::string& reason) {
  ringlet::test::run_ranks(3, [&](ringlet::Group& group) {
    std::string problem;
    try {
      share_inputs(group, options, [&] { return text; });
    } catch (const InputError& error) {
      problem = error.what();
    }
    expect(problem.find(reason) != std::string::npos, "rank " + std::to_string(group.rank()) + ": " + problem);
  });
}

}  // namespace

TEST_CASE("rank 0's settings and text count for all, and what is not a setting stays") {
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  Options first = small_options(Mode::fsdp);
  first.seed = ~std::uint64_t{0};
  first.checkpoint = "of rank 0";
  first.saves = true;
  first.outer_learning_rate = 0.3;
  first.outer_momentum = 0.6;
  ringlet::test::run_ranks(3, [&](ringlet::Group& group) {
    Options own = first;
    if (group.rank() > 0) {
      own = Options();
      own.steps = 7;
      own.given = {"steps", "seed"};
      own.log_losses = "mine";
      if (group.rank() == 2) own.checkpoint = "of rank 2";
    }
    const SharedInputs inputs = share_inputs(group, own, group.rank() == 0 ? [&] { return text; } : std::function<Bytes()>(no_text));
    const Options& options = inputs.options;
    expect(named_values(options) == named_values(first), "the settings");
    expect(options.saves, "whether there are checkpoints");
    expect(options.checkpoint == (group.rank() == 2 ? "of rank 2" : "of rank 0"), "the folder");
    expect(options.log_losses == own.log_losses, "the log");
    expect(std::equal(text.begin(), text.end(), inputs.corpus.text().begin(), inputs.corpus.text().end()), "the text");
    const std::string overruled = group.rank() == 0 ? "" : "--steps is 50, not 7; --seed is 18446744073709551615, not 1";
    expect(inputs.overruled == overruled, inputs.overruled);
  });
}

TEST_CASE("where rank 0 cannot begin, every rank says why") {
  const Bytes text(1000, 'a');
  Options options = small_options();
  check_refusal(options, Bytes(20, 'a'), "the text has 20 bytes");
  options.batch = 2;
  check_refusal(options, text, "--batch 2 leaves some of the 3 ranks without a sequence");
  options = small_options(Mode::fsdp);
  set_guests(options, 1);
  check_refusal(options, text, "--fsdp needs native ranks only");
}

TEST_CASE("beside browsers rank 0 looks for a checkpoint where the ranks train alone, and all ranks learn the folder") {
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  const Folder folder;
  Options options = small_options();
  options.inner_steps = 10;
  options.checkpoint = folder.path() / "saved";
  options.saves = true;
  set_guests(options, 1);
  ringlet::test::run_ranks(3, [&](ringlet::Group& group) {
    Options own = options;
    if (group.rank() > 0) own.checkpoint.clear();
    const SharedInputs inputs = share_inputs(group, own, [&] { return text; });
    expect(inputs.options.checkpoint == options.checkpoint, "the folder");
    expect(std::equal(text.begin(), text.end(), inputs.corpus.text().begin(), inputs.corpus.text().end()), "the text");
  });
  ringlet::save_checkpoint(ringlet::Group(), options.checkpoint, ringlet::Checkpoint().set("nothing", "at all"), {.step = 5});
  check_refusal(options, text, "holds a checkpoint already, step-00000005");
  options.resume = true;
  ringlet::test::run_ranks(2, [&](ringlet::Group& group) { (void)share_inputs(group, options, [&] { return text; }); });
  options.checkpoint = folder.path() / "empty";
  check_refusal(options, text, "there is no checkpoint in " + options.checkpoint.string());
}

TEST_CASE("ranks that train alone have a lower learning rate, unless one is given") {
  const auto rate_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), "train_text");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return parse_options(static_cast<int>(arguments.size()), arguments.data())->learning_rate;
  };
  CHECK(rate_of({}) == 6e-3);
  CHECK(rate_of({"--inner-steps", "50"}) == 3e-3);
  CHECK(rate_of({"--inner-steps", "50", "--learning-rate", "0.006"}) == 6e-3);
  CHECK(rate_of({"--learning-rate", "0.01"}) == 0.01);
}

TEST_CASE("shares are measured beside browsers, unless something was chosen") {
  Options options;
  set_guests(options, 0);
  CHECK(options.shares == Shares::even);
  set_guests(options, 2);
  CHECK(options.shares == Shares::measured);
  options.shares_follow_guests = false;
  options.shares = Shares::even;
  set_guests(options, 2);
  CHECK(options.shares == Shares::even);
}
