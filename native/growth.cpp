#include "native/growth.hpp"

#include <system_error>
#include <utility>

#include "native/reachability.hpp"

namespace ringlet::native {

Growth::Growth(WorldConfig next, WorldStart start, Address coordinator) : stop_(start.stop) {
  if (next.options.rank == 0) next.meeting.on_listening = [progress = progress_](std::uint16_t port) { progress->set_port(port); };
  try {
    thread_ = std::thread([this, next = std::move(next), start = std::move(start), coordinator = std::move(coordinator)]() mutable {
      form(std::move(next), start, coordinator);
    });
  } catch (const std::system_error&) {
    progress_->fail();
  }
}

Growth::Growth() : stop_(std::make_shared<MeetingStop>()) { progress_->fail(); }

Growth::~Growth() {
  stop({Errc::cancelled, "the growth of the group was given up"});
  if (thread_.joinable()) thread_.join();
}

void Growth::form(WorldConfig next, const WorldStart& start, const Address& coordinator) {
  try {
    meet_at(coordinator, next.reach, uv::list_interfaces(), next.hosts, next.options.rank, next.meeting);
    world_ = std::make_shared<NativeWorld>(next, start);
    watch_world();
  } catch (const std::exception&) {
    // The processes that join are told why by their own meeting.
    progress_->fail();
  }
}

void Growth::watch_world() {
  world_->driver().run([&] {
    world_->core().set_failure_handler([progress = progress_](const Status&) { progress->fail(); });
    world_->core().failure().ok() ? progress_->met() : progress_->fail();
  });
}

void Growth::Progress::met() {
  const std::lock_guard lock(mutex);
  growth.met();
  changed.notify_all();
}

void Growth::Progress::fail() {
  const std::lock_guard lock(mutex);
  growth.fail();
  changed.notify_all();
}

void Growth::Progress::set_port(std::uint16_t to) {
  const std::lock_guard lock(mutex);
  port = to;
  changed.notify_all();
}

GrowthState Growth::state() {
  const std::lock_guard lock(progress_->mutex);
  return progress_->growth.state();
}

std::uint16_t Growth::await_port() {
  std::unique_lock lock(progress_->mutex);
  progress_->changed.wait(lock, [this] { return progress_->port || progress_->growth.state() == GrowthState::failed; });
  return progress_->growth.state() == GrowthState::failed ? 0 : progress_->port.value_or(0);
}

bool Growth::wait_for(std::chrono::milliseconds timeout) {
  std::unique_lock lock(progress_->mutex);
  return progress_->changed.wait_for(lock, timeout, [this] { return progress_->growth.state() != GrowthState::forming; });
}

std::shared_ptr<NativeWorld> Growth::take() {
  if (thread_.joinable()) thread_.join();
  return std::move(world_);
}

}  // namespace ringlet::native
