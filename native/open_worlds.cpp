#include "native/open_worlds.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <ringlet/group.hpp>
#include <utility>
#include <vector>

#include "native/native_world.hpp"
#include "native/own_process.hpp"

namespace ringlet::native {

namespace {

/// Others that are there read a goodbye at once, whatever they compute.
constexpr auto kLeavePatience = std::chrono::seconds(3);

struct OpenWorlds {
  std::mutex mutex;
  std::vector<NativeWorld*> worlds;
};

struct Inherited {
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> objects;
};

PerProcess<OpenWorlds> open_worlds;
PerProcess<Inherited> inherited_objects;

}  // namespace

void add_open_world(NativeWorld& world) {
  [[maybe_unused]] static const bool leaves = (run_at_exit(leave_all), true);
  OpenWorlds& open = open_worlds.get();
  const std::lock_guard lock(open.mutex);
  open.worlds.push_back(&world);
}

void remove_open_world(NativeWorld& world) {
  OpenWorlds& open = open_worlds.get();
  const std::lock_guard lock(open.mutex);
  std::erase(open.worlds, &world);
}

void keep_for_ever(std::shared_ptr<void> inherited) {
  Inherited& kept = inherited_objects.get();
  const std::lock_guard lock(kept.mutex);
  kept.objects.push_back(std::move(inherited));
}

}  // namespace ringlet::native

namespace ringlet {

void leave_all() noexcept {
  using Clock = std::chrono::steady_clock;
  native::OpenWorlds& open = native::open_worlds.get();
  const std::lock_guard lock(open.mutex);
  for (native::NativeWorld* world : open.worlds) world->leave();
  const auto deadline = Clock::now() + native::kLeavePatience;
  for (native::NativeWorld* world : open.worlds)
    world->await_left(Duration{std::chrono::nanoseconds(std::max<Clock::duration>(deadline - Clock::now(), {})).count()});
}

}  // namespace ringlet
