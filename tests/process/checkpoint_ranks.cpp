// A rank that saves or loads checkpoints. checkpoint_kill_test starts it:
//   save DIRECTORY STEP MOMENT VICTIM   the victim is killed when its save reaches that moment (-1: never)
//   load DIRECTORY                      prints the step, once every byte is known to be that step's

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/checkpoint/save.hpp"
#include "tests/native/checkpoint_state.hpp"

using namespace ringlet;

namespace {

int save(const std::filesystem::path& directory, unsigned step, int moment, int victim) {
  Group world = init({.strict = true});
  test::TrainingState state(world.rank(), world.size(), step);
  const Checkpoint checkpoint = state.checkpoint();
  const auto hook = [&](native::SaveMoment reached) {
    if (world.rank() == victim && static_cast<int>(reached) == moment) ::kill(::getpid(), SIGKILL);
  };
  native::save(world, directory / std::to_string(world.rank()), checkpoint, {.step = step, .keep = 1}, hook);
  return 0;
}

int load(const std::filesystem::path& directory) {
  Group world = init({.strict = true});
  test::TrainingState state(world.rank(), world.size(), 0);
  Checkpoint checkpoint = state.checkpoint();
  const auto step = load_checkpoint(world, directory / std::to_string(world.rank()), checkpoint);
  const std::string wrong = step ? state.wrong(static_cast<unsigned>(*step)) : "there is no checkpoint";
  std::printf("%s\n", wrong.empty() ? ("step " + std::to_string(*step)).c_str() : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 6 && std::strcmp(argv[1], "save") == 0)
      return save(argv[2], static_cast<unsigned>(std::atoi(argv[3])), std::atoi(argv[4]), std::atoi(argv[5]));
    if (argc == 3 && std::strcmp(argv[1], "load") == 0) return load(argv[2]);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 2;
}
