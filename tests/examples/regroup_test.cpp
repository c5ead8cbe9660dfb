// Ranks of a run are lost, and the others go on.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <latch>
#include <mutex>
#include <optional>
#include <shared_inputs.hpp>
#include <trainer.hpp>

#include "folder.hpp"
#include "native/joining.hpp"
#include "small_text.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/guest.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

using namespace train_text;
using ringlet::test::expect;
using ringlet::test::run_elastic;

namespace {

constexpr int kRanks = 3;

Options options_for_regrouping(Mode mode = Mode::data_parallel) {
  Options options = small_options(mode);
  options.steps = 12;
  options.batch = 6;
  options.check_every = 4;
  return options;
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
  run_elastic(kRanks, [&](ringlet::Group& group) {
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
  Options options = options_for_regrouping(GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard));
  options.shares = GENERATE(Shares::even, Shares::measured);
  const std::vector<double> undisturbed = train_and_leave(options, -1, {}).of_steps;
  REQUIRE(undisturbed.size() == 12);
  for (const int leaver : {0, 1, 2})
    for (const Act act : {Act::beginning, Act::parameters, Act::validation, Act::gradients, Act::average, Act::loss_sum, Act::apply,
                          Act::hashes, Act::waiting}) {
      CAPTURE(name_of(options.mode), leaver, name_of(act));
      const Losses losses = train_and_leave(
          options, leaver, [act](const Run& run) { return run.act() == act && run.step() >= (act < Act::gradients ? 0 : 7); });
      CHECK(losses.regroupings == 1);
      check_same(losses.of_steps, undisturbed);
    }
}

TEST_CASE("a checkpoint that a lost rank interrupts is written by the others") {
  Options options = options_for_regrouping(GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard));
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

namespace {

bool is_forming(ringlet::native::SharedGroup& group) { return group.growth().state() == ringlet::GrowthState::forming; }

/// Whether a newcomer has not knocked yet, or is on its way into the group.
bool is_awaited(ringlet::native::SharedGroup& group) {
  return is_forming(group) || (group.growth().state() == ringlet::GrowthState::none && group.growth().waiting() == 0);
}

}  // namespace

TEST_CASE("a process that joins a run takes part in it, also where ranks are lost before or after it") {
  const Options options = options_for_regrouping(GENERATE(Mode::data_parallel, Mode::fsdp, Mode::fully_shard));
  const std::vector<double> undisturbed = train_and_leave(options, -1, {}).of_steps;
  for (const int leaver : {-1, 0, 1, 2})
    for (const int leaves_at : {3, 5, 6}) {
      CAPTURE(name_of(options.mode), leaver, leaves_at);
      if (leaver < 0 && leaves_at != 5) continue;
      const Corpus corpus = small_corpus();
      const auto join = [&](const std::string& door) {
        ringlet::Group group = ringlet::init(ringlet::test::joiner_options(door));
        const SharedInputs inputs =
            share_inputs(group, Options(), []() -> Bytes { throw std::runtime_error("the text of a newcomer is not needed"); });
        Trainer trainer(inputs.options, inputs.corpus, std::move(group), true);
        group = ringlet::Group();
        int steps = 0;
        for (Act act = Act::beginning; act != Act::end;) {
          act = trainer.advance();
          if (act == Act::apply)
            CHECK(trainer.run().loss() == Approx(undisturbed[static_cast<std::size_t>(trainer.first_step() + steps++)]).epsilon(2e-5));
        }
        expect(trainer.first_step() > 0 && trainer.first_step() + steps == options.steps, "it takes the steps that are left");
      };
      std::optional<ringlet::test::Process> newcomer;
      run_elastic(kRanks, [&](ringlet::Group& group) {
        const int origin = group.rank();
        Trainer trainer(options, corpus, std::exchange(group, ringlet::Group()));
        std::vector<double> losses;
        bool joined = false;
        for (Act act = Act::beginning; act != Act::end;) {
          const Run& run = trainer.run();
          if (run.act() == Act::gradients && run.step() == leaves_at && origin == leaver) return;
          // All wait for the newcomer, which knocks where the rank stays, and again where it was admitted in vain, and for its admission,
          // each until its own links are ready: the others may need longer for theirs.
          if (run.act() == Act::gradients && run.step() >= 5 && !joined) {
            ringlet::native::SharedGroup& shared = trainer.group().shared();
            const bool is_at_door = origin == (leaver + 1) % kRanks;
            if (is_at_door && !newcomer) newcomer.emplace([&, door = trainer.group().door()] { join(door); });
            while (is_at_door ? is_awaited(shared) && !newcomer->has_failed() : is_forming(shared))
              ringlet::test::pass(std::chrono::milliseconds(1));
          }
          act = trainer.advance();
          joined |= act == Act::regroup && trainer.regrouping().cause.empty();
          if (act == Act::apply) losses.push_back(trainer.run().loss());
        }
        check_same(losses, undisturbed);
        expect(joined, "one has joined");
      });
      newcomer->join();
    }
}

namespace {

/// Waits until somebody has knocked at the door of any rank, and then until the next world is ready, or is not to be.
void await_growth(ringlet::native::SharedGroup& group, std::atomic<bool>& has_knocked) {
  using ringlet::GrowthState;
  while (group.growth().state() == GrowthState::forming || (group.growth().state() == GrowthState::none && !has_knocked)) {
    if (group.growth().waiting() > 0) has_knocked = true;
    ringlet::test::pass(std::chrono::milliseconds(1));
  }
}

}  // namespace

TEST_CASE("a rank that was left out by a run that had begun with a browser joins it again") {
  Options options = options_for_regrouping();
  options.guests = 1;
  options.steps = 40;
  const Corpus corpus = small_corpus();
  std::latch others_go_on(2);
  std::atomic<bool> has_knocked{false};
  std::optional<ringlet::test::Process> guest;
  const auto come_once = [](const std::string& door) {
    ringlet::test::NativeGuest visitor(ringlet::parse_address(door).value(), "", "a browser");
    expect(visitor.meet().ok(), "the guest is in");
    std::vector<float> values(1);
    (void)visitor.receive(ringlet::make_receive(values, 0, visitor.options()));
  };
  ringlet::test::run_ranks(
      kRanks,
      [&](ringlet::Group& group) {
        const bool stands_still = group.rank() == 2;
        if (group.rank() == 0) guest.emplace([&, door = group.door()] { come_once(door); });
        const auto natives = std::exchange(group, ringlet::Group()).shared().shared_from_this();
        Trainer trainer(options, corpus, ringlet::Group(ringlet::native::await_first_guests(natives, 1, ringlet::Duration::seconds(60))));
        if (stands_still) ringlet::test::stand_still(trainer.group(), others_go_on);
        bool is_complete = false;
        try {
          for (Act act = Act::beginning; act != Act::end;) {
            if (trainer.run().act() == Act::gradients && trainer.run().step() >= 5 && !is_complete)
              await_growth(trainer.group().shared(), has_knocked);
            act = trainer.advance();
            if (act != Act::regroup) continue;
            const Regrouping& now = trainer.regrouping();
            if (now.ranks == 2) others_go_on.count_down();
            is_complete = now.ranks == kRanks;
            expect(now.rejoined == stands_still, "who was left out");
          }
        } catch (...) {
          // Nobody waits for it any more.
          has_knocked = true;
          throw;
        }
        expect(is_complete, "all are together");
        const std::vector<std::uint64_t>& hashes = trainer.run().hashes();
        expect(hashes.size() == kRanks && std::ranges::count(hashes, hashes[0]) == kRanks, "the parameters are equal on all ranks");
      },
      ringlet::test::impatient);
  guest->join();
}

TEST_CASE("where both holders of sharded state go, the run goes back to its newest checkpoint, and takes all its steps") {
  Options options = options_for_regrouping(GENERATE(Mode::fsdp, Mode::fully_shard));
  const std::vector<double> undisturbed = train_and_leave(options, -1, {}).of_steps;
  options.saves = GENERATE(true, false);
  options.checkpoint_every = 5;
  const Folder folder;
  options.checkpoint = folder.path();
  const Corpus corpus = small_corpus();
  std::latch both_are_there(2);
  run_elastic(4, [&](ringlet::Group& group) {
    const int origin = group.rank();
    Trainer trainer(options, corpus, std::exchange(group, ringlet::Group()));
    std::vector<double> losses;
    std::string rollback;
    try {
      for (Act act = Act::beginning; act != Act::end;) {
        if ((origin == 1 || origin == 2) && trainer.run().act() == Act::gradients && trainer.run().step() == 7) {
          both_are_there.arrive_and_wait();
          return;
        }
        act = trainer.advance();
        if (act == Act::apply) losses.push_back(trainer.run().loss());
        if (act == Act::regroup) {
          rollback = trainer.regrouping().rollback;
          losses.resize(5);
        }
      }
    } catch (const std::runtime_error& error) {
      expect(!options.saves && std::string(error.what()).find("and nothing was saved") != std::string::npos, error.what());
      return;
    }
    expect(options.saves && rollback.find("going back to the checkpoint of step 5") != std::string::npos, rollback);
    check_same(losses, undisturbed);
  });
}

TEST_CASE("a rank that is lost while the run is opened is not needed") {
  const Corpus corpus = small_corpus();
  const Bytes text(corpus.text().begin(), corpus.text().end());
  const Options options = options_for_regrouping();
  for (const int leaver : {0, 2})
    run_elastic(kRanks, [&](ringlet::Group& group) {
      if (group.rank() == leaver) return;
      const SharedInputs inputs = share_inputs(group, options, [&] { return text; });
      expect(inputs.corpus.text().size() == corpus.text().size(), "the text");
      // Where the others had opened it when the rank went, they learn of that now.
      try {
        group.barrier();
      } catch (const ringlet::PeerLost&) {
        group = group.reform().world;
      }
      expect(group.size() == 2, "two are left");
    });
}
