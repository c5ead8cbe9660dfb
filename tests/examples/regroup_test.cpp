// Ranks of a run are lost, and the others go on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <mutex>
#include <opening.hpp>
#include <trainer.hpp>

#include "folder.hpp"
#include "small_text.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace train_text;
using ringlet::test::expect;

namespace {

constexpr int kRanks = 3;

Options options_for_regrouping() {
  Options options = small_options(Mode::data_parallel);
  options.steps = 12;
  options.batch = 6;
  options.check_every = 4;
  return options;
}

void run_elastic(const std::function<void(ringlet::Group&)>& body) {
  ringlet::test::run_ranks(kRanks, body, [](ringlet::native::WorldConfig& config) {
    config.options.elastic = true;
    config.on_split = ringlet::OnSplit::wait;
  });
}

/// The losses of all committed steps, as the ranks that reached the end have them.
struct Losses {
  std::vector<double> of_steps;
  int regroupings = 0;
};

/// Rank `leaver` goes when `leaves` says so.
Losses train_and_leave(const Options& options, int leaver, const std::function<bool(const Run&)>& leaves) {
  const Corpus corpus = small_corpus();
  Losses result;
  std::mutex mutex;
  run_elastic([&](ringlet::Group& group) {
    const int origin = group.rank();
    Trainer trainer(options, corpus, std::exchange(group, ringlet::Group()));
    Losses own;
    for (Act act = Act::beginning; act != Act::end;) {
      if (origin == leaver && leaves(trainer.run())) return;
      act = trainer.advance();
      if (act == Act::apply) own.of_steps.push_back(trainer.run().loss());
      if (act != Act::regroup) continue;
      ++own.regroupings;
      const Regrouping& now = trainer.regrouping();
      expect(now.ranks == kRanks - 1 && now.ranks_before == kRanks && now.seconds > 0, "who goes on");
      expect(now.cause.find("rank " + std::to_string(leaver)) != std::string::npos, now.cause);
    }
    const std::vector<std::uint64_t>& hashes = trainer.run().hashes();
    expect(std::ranges::count(hashes, hashes[0]) == static_cast<std::ptrdiff_t>(hashes.size()), "the parameters are equal on all ranks");
    const std::lock_guard lock(mutex);
    expect(result.of_steps.empty() || result.of_steps == own.of_steps, "the ranks' losses are equal");
    result = own;
  });
  return result;
}

}  // namespace

TEST_CASE("whichever rank goes, and at whatever act, the run takes all its steps on the same batches") {
  Options options = options_for_regrouping();
  options.shares = GENERATE(Shares::even, Shares::measured);
  const std::vector<double> undisturbed = train_and_leave(options, -1, {}).of_steps;
  REQUIRE(undisturbed.size() == 12);
  for (const int leaver : {0, 1, 2})
    for (const Act act : {Act::beginning, Act::parameters, Act::validation, Act::gradients, Act::average, Act::loss_sum, Act::apply,
                          Act::hashes, Act::waiting}) {
      CAPTURE(leaver, name_of(act));
      const Losses losses = train_and_leave(
          options, leaver, [act](const Run& run) { return run.act() == act && run.step() >= (act < Act::gradients ? 0 : 7); });
      CHECK(losses.regroupings == 1);
      check_same(losses.of_steps, undisturbed);
    }
}

TEST_CASE("a checkpoint that a lost rank interrupts is written by the others") {
  Options options = options_for_regrouping();
  options.saves = true;
  options.checkpoint_every = 5;
  for (const int leaver : {0, 2}) {
    const Folder folder;
    options.checkpoint = folder.path();
    train_and_leave(options, leaver, [](const Run& run) { return run.act() == Act::checkpoint && run.step() == 9; });
    CHECK(std::filesystem::exists(folder.path() / "step-00000010"));
    CHECK(std::filesystem::exists(folder.path() / "step-00000012"));
  }
}

TEST_CASE("modes that shard end when a rank is lost") {
  Options options = small_options(Mode::fsdp);
  CHECK_THROWS_AS(train_and_leave(options, 1, [](const Run& run) { return run.step() == 3; }), ringlet::PeerLost);
}

TEST_CASE("a rank that is lost while the run is opened is not needed") {
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  const Options options = options_for_regrouping();
  for (const int leaver : {0, 2})
    run_elastic([&](ringlet::Group& group) {
      if (group.rank() == leaver) return;
      const Opening opening = open_run(group, options, [&] { return text; });
      expect(group.size() == 2 && opening.corpus.text().size() == corpus.text().size(), "the run is open");
      group.barrier();
    });
}
