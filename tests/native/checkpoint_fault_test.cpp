#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>

#include "native/checkpoint/exchange.hpp"
#include "native/checkpoint/file.hpp"
#include "native/checkpoint/find.hpp"
#include "native/checkpoint/folders.hpp"
#include "native/checkpoint/save.hpp"
#include "tests/native/checkpoint_state.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;
using native::SaveMoment;
namespace fs = std::filesystem;

namespace {

/// Saves `seed` as `step` on two ranks. Every rank must get an `IoError` that begins with `who` and contains `what`. The group must stay
/// usable afterwards.
void failing_save(const std::function<fs::path(int)>& directory_of, std::uint64_t step, unsigned seed, const std::string& who,
                  const std::string& what, const std::function<native::SaveHook(int)>& hook_of = {}, std::int64_t rows = 11) {
  run_ranks(2, [&](Group& world) {
    TrainingState state(world.rank(), 2, seed, {}, rows);
    Checkpoint checkpoint = state.checkpoint();
    try {
      native::save(world, directory_of(world.rank()), checkpoint, {.step = step}, hook_of ? hook_of(world.rank()) : native::SaveHook());
    } catch (const IoError& error) {
      const std::string text = error.what();
      expect(text.starts_with(who) && text.find(what) != std::string::npos, text);
      world.barrier();
      return;
    }
    throw std::runtime_error("the save did not fail");
  });
}

bool has_leftovers(const fs::path& directory) {
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(".") || name.find("replaced") != std::string::npos) return true;
  }
  return false;
}

/// A small file system of its own, if this system lets the test mount one.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path at) : at_(std::move(at)) {
    fs::create_directories(at_);
#ifdef __linux__
    mounted_ = ::mount("none", at_.c_str(), "tmpfs", 0, "size=256k") == 0;
#endif
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
#ifdef __linux__
    if (mounted_) ::umount(at_.c_str());
#endif
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path at_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("a save that fails on one rank at any moment changes nothing, and every rank hears why") {
  const auto moment = GENERATE(SaveMoment::folder_created, SaveMoment::block_written, SaveMoment::file_written,
                               SaveMoment::manifest_written, SaveMoment::replaced_set_aside, SaveMoment::renamed);
  const int culprit = GENERATE(0, 1);
  const bool shared = GENERATE(true, false);
  const std::uint64_t step = GENERATE(2u, 1u);  // 1: replaces the checkpoint that is there
  // Rank 1 renames nothing where rank 0 leads, and nothing is set aside where there was nothing before.
  if (shared && culprit == 1 && moment >= SaveMoment::replaced_set_aside) return;
  if (step == 2 && moment == SaveMoment::replaced_set_aside) return;
  CAPTURE(static_cast<int>(moment), culprit, shared, step);
  const ScratchDirectory scratch;
  const auto directory_of = [&](int rank) { return shared ? scratch.path() : scratch.of(rank); };
  save_state(2, directory_of, 1, 4);
  failing_save(directory_of, step, 5, "rank " + std::to_string(culprit) + ": ", "the test's disk", [&](int rank) -> native::SaveHook {
    if (rank != culprit) return {};
    return [moment](SaveMoment reached) {
      if (reached == moment) throw IoError({Errc::io_error, "the test's disk"});
    };
  });
  CHECK_FALSE(has_leftovers(scratch.path()));
  CHECK(load_state(2, directory_of, 4) == 1u);
  save_state(2, directory_of, step, 6);
  CHECK(load_state(2, directory_of, 6) == step);
}

TEST_CASE("once all ranks have renamed, the new checkpoint counts, whatever happens to the old ones") {
  const ScratchDirectory scratch;
  const auto here = [&](int) { return scratch.path(); };
  save_state(2, here, 1, 4);
  run_ranks(2, [&](Group& world) {
    TrainingState state(world.rank(), 2, 5);
    Checkpoint checkpoint = state.checkpoint();
    checkpoint.set("seed", 5u).set("rate", 0.5).set("name", "run").set("offset", -5);
    native::save(world, scratch.path(), checkpoint, {.step = 2, .keep = 1}, [](SaveMoment reached) {
      if (reached == SaveMoment::agreed) throw IoError({Errc::io_error, "the test's disk"});
    });
  });
  CHECK(load_state(3, here, 5) == 2u);
  CHECK(load_state(3, here, 4, {}, 1) == 1u);
}

TEST_CASE("a full disk and a directory that cannot be are errors on every rank") {
  const ScratchDirectory scratch;
  const auto directory_of = [&](int rank) { return scratch.of(rank); };
  std::ofstream(scratch.of(1)) << "in the way";
  failing_save(directory_of, 1, 4, "rank 1: " + scratch.of(1).string(), "is not a directory");
  fs::remove(scratch.of(1));
  const SmallDisk disk(scratch.of(1));
  if (!disk.mounted()) {
    WARN("no small file system can be mounted here: the full disk is not tested");
    return;
  }
  save_state(2, directory_of, 1, 4);
  failing_save(directory_of, 2, 5, "rank 1: " + scratch.of(1).string(), "No space left on device", {}, 30'000);
  CHECK_FALSE(has_leftovers(scratch.path()));
  CHECK(load_state(2, directory_of, 4) == 1u);
}

TEST_CASE("where only some disks have the new checkpoint, the last whole one is loaded") {
  const ScratchDirectory scratch;
  const auto directory_of = [&](int rank) { return scratch.of(rank); };
  save_state(3, directory_of, 1, 4);
  save_state(3, directory_of, 2, 5);
  const int lost = GENERATE(0, 1, 2);
  fs::remove_all(scratch.of(lost) / "step-00000002");
  CHECK(load_state(3, directory_of, 4) == 1u);
  CHECK(load_error(3, directory_of, 2).find("is seen by no rank") != std::string::npos);
  save_state(3, directory_of, 2, 6);
  CHECK(load_state(3, directory_of, 6) == 2u);
}

TEST_CASE("a rank that announces texts beyond the limit makes no other one take memory for them") {
  const auto most = std::uint64_t{256} << 20;
  for (const std::uint64_t announced : {most, most + 1, UINT64_MAX}) {
    CAPTURE(announced);
    run_ranks(2, [&](Group& world) {
      if (world.rank() == 1) {
        std::vector<std::uint64_t> lengths(2);
        return world.all_gather(std::vector<std::uint64_t>{announced}, lengths);
      }
      const std::string text = failure_of<InvalidArgument>([&] { (void)native::Exchange(world, {}).gather("mine"); });
      expect(text.find("rank 1") != std::string::npos && text.find(std::to_string(announced)) != std::string::npos, text);
    });
  }
}

TEST_CASE("one rank's long text is sent once to each of the others, beside empty ones") {
  run_worlds(
      4,
      [](const std::weak_ptr<native::NativeWorld>& native_world, Group& world) {
        const std::string text(4 << 20, 'x');
        const auto texts = native::Exchange(world, {}).gather(world.rank() == 1 ? text : "");
        expect(texts == std::vector<std::string>({"", text, "", ""}), "the texts");
        std::uint64_t bytes = 0;
        world.shared().driver().run([&] { bytes = native_world.lock()->core().state().bytes_received; });
        expect(bytes < 2 * text.size(), [&] { return std::to_string(bytes) + " bytes"; });
        world.barrier();
      },
      [](native::WorldConfig& config) { config.peer_memory = false; });
}

TEST_CASE("a rank that says of its files what cannot be read is blamed") {
  struct Stopped {};
  const ScratchDirectory scratch;
  const auto save = [&](Group& world, const native::SaveHook& hook) {
    TrainingState state(world.rank(), 2, 4);
    Checkpoint checkpoint = state.checkpoint();
    native::save(world, scratch.path(), checkpoint, {.step = 1}, hook);
  };
  // Each stands in the place of one text, those before which are as they should be.
  const auto [part, told] = GENERATE(table<std::string, std::vector<std::string>>({{"a list of files", {"[0,"}},
                                                                                   {"a list of files", {"[\"1\"]"}},
                                                                                   {"the size and checksum", {"", "[1]"}},
                                                                                   {"the size and checksum", {"", "[1,\"x\",-8]"}}}));
  CAPTURE(part, told);
  expect_blame(
      part, [&](Group& world) { save(world, {}); },
      [&, &told = told](Group& world) {
        const auto hook = [&](SaveMoment reached) {
          if (reached != SaveMoment::file_written) return;
          const native::Exchange exchange(world, {});
          for (const std::string& text : told) {
            exchange.require_ok({});
            (void)exchange.gather(text);
          }
          throw Stopped();
        };
        try {
          save(world, hook);
        } catch (const Stopped&) {
        }
      });
}

TEST_CASE("a rank that says of its checkpoints what does not fit together is blamed") {
  const ScratchDirectory scratch;
  const std::string text = GENERATE("[", "7", "[[1]]", R"([[1,true,"step-00000001","","00",[true],[[7]]]])",
                                    R"([[1,true,"step-00000001","","00",[true],[[-1]]]])");
  CAPTURE(text);
  expect_blame(
      "a list of checkpoints", [&](Group& world) { (void)native::find(native::Exchange(world, {}), scratch.path(), {}); },
      [&](Group& world) {
        const native::Exchange exchange(world, {});
        exchange.require_ok({});
        (void)exchange.gather(text);
      });
}

TEST_CASE("a rank that sees other files of a checkpoint than its manifest has is blamed") {
  const ScratchDirectory scratch;
  save_state(1, [&](int) { return scratch.path(); }, 1, 4);
  expect_blame(
      "a list of checkpoints", [&](Group& world) { (void)native::find(native::Exchange(world, {}), scratch.path(), {}); },
      [&](Group& world) {
        const native::Exchange exchange(world, {});
        exchange.require_ok({});
        const std::string folder = "step-00000001";
        const auto text = native::read_file(scratch.path() / folder / native::kManifestName, native::kMaxManifestBytes);
        (void)exchange.gather("[[1,true,\"" + folder + "\",\"\",\"" + native::parse_manifest(text).id + "\",[true,true],[[0,1]]]]");
        (void)exchange.broadcast("", 0);
      });
}

TEST_CASE("a rank that is lost in the middle of a save leaves the last checkpoint loadable") {
  const auto moment = GENERATE(SaveMoment::folder_created, SaveMoment::file_written, SaveMoment::manifest_written, SaveMoment::renamed);
  const int victim = GENERATE(0, 2);
  const ScratchDirectory scratch;
  const auto directory_of = [&](int rank) { return scratch.of(rank); };
  save_state(3, directory_of, 1, 4);
  std::atomic<int> told{0};
  run_ranks(3, [&](Group& world) {
    TrainingState state(world.rank(), 3, 5);
    Checkpoint checkpoint = state.checkpoint();
    checkpoint.set("seed", 5u).set("rate", 0.5).set("name", "run").set("offset", -5);
    struct Gone {};
    try {
      native::save(world, directory_of(world.rank()), checkpoint, {.step = 2}, [&](SaveMoment reached) {
        if (world.rank() == victim && reached == moment) throw Gone();
      });
    } catch (const Gone&) {
      world = Group();
    } catch (const PeerLost&) {
      ++told;
    }
  });
  CHECK(told == 2);
  const auto step = latest_of(3, directory_of);
  CHECK(step == (moment == SaveMoment::renamed ? step : 1u));
  CHECK(load_state(3, directory_of, step == 1u ? 4 : 5) == step);
  save_state(3, directory_of, 3, 6);
  CHECK_FALSE(has_leftovers(scratch.path()));
  CHECK(load_state(3, directory_of, 6) == 3u);
}
