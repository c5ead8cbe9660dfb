#include "native/world.hpp"

#include <unistd.h>

#include <string>
#include <utility>

namespace ringlet::native {

namespace {

constexpr std::uint16_t kStreams = 1024;

/// Checks what requests.hpp does not see, and fills the task's deadline in.
template <class Task>
Status apply(const CallOptions& call, Result<Task>& task) {
  if (!task.ok()) return task.status();
  if (call.stream.id >= kStreams)
    return {Errc::invalid_argument,
            "stream " + std::to_string(call.stream.id) + " does not exist; streams are numbered 0 to " + std::to_string(kStreams - 1)};
  if (!call.timeout) return {};
  if (call.timeout->count() <= 0)
    return {Errc::invalid_argument, "a timeout of " + std::to_string(call.timeout->count()) + " ms; it must be positive"};
  task.value().timeout = Duration::milliseconds(call.timeout->count());
  return {};
}

std::shared_ptr<WorkState> failed(Status status) {
  auto state = std::make_shared<WorkState>();
  state->status = std::move(status);
  state->done = true;
  return state;
}

}  // namespace

World::World(const WorldConfig& config) : options_(config.options), progress_(config.options.size > 1) {
  progress_.run([&] {
    network_ = std::make_unique<UvNetwork>(progress_.loop());
    core_ = std::make_unique<ringlet::World>(progress_.loop(), options_);
  });
  if (options_.size == 1) return;
  try {
    meet(config);
  } catch (...) {
    close();
    throw;
  }
}

World::~World() { close(); }

void World::meet(const WorldConfig& config) {
  WorkState met;
  std::unique_ptr<Meeting> meeting;
  progress_.run_until(
      [&] {
        meeting = std::make_unique<Meeting>(progress_.loop(), *network_, *core_, config.meeting);
        const auto on_met = [&met](const Status& status) {
          met.status = status;
          met.done = true;
        };
        if (config.listening_descriptor) {
          auto listener = network_->adopt_listener(*config.listening_descriptor, meeting->acceptor());
          if (!listener.ok()) {
            ::close(*config.listening_descriptor);
            return on_met(listener.status());
          }
          meeting->use_listener(std::move(listener).value());
        }
        meeting->start(on_met);
      },
      met.done);
  progress_.run([&] { meeting.reset(); });
  throw_if_failed(met.status);
}

void World::close() {
  if (!core_) return;
  std::atomic<bool> closed{false};
  progress_.run_until([&] { core_->close([&closed] { closed = true; }); }, closed);
  progress_.run([&] {
    core_.reset();
    network_.reset();
  });
}

Completion World::completion_of(std::shared_ptr<WorkState> state) {
  return [this, state = std::move(state)](const Status& status) {
    state->status = status;
    state->done.store(true, std::memory_order_release);
    progress_.background_done();
  };
}

template <class Task, class Give>
std::shared_ptr<WorkState> World::start_task(const CallOptions& call, Result<Task> task, Give give) {
  if (Status status = apply(call, task); !status.ok()) return failed(std::move(status));
  auto state = std::make_shared<WorkState>();
  task.value().completion = completion_of(state);
  progress_.run_in_background([give, value = std::move(task).value()]() mutable { give(std::move(value)); });
  return state;
}

template <class Task, class Give>
void World::run_task(const CallOptions& call, Result<Task> task, Give give) {
  throw_if_failed(apply(call, task));
  WorkState state;
  task.value().completion = [&state](const Status& status) {
    state.status = status;
    state.done.store(true, std::memory_order_release);
  };
  progress_.run_until([&] { give(std::move(task).value()); }, state.done);
  throw_if_failed(state.status);
}

std::shared_ptr<WorkState> World::start(const CallOptions& call, Result<CollectiveTask> task) {
  return start_task(call, std::move(task), [this, id = call.stream.id](CollectiveTask value) { core_->start(id, std::move(value)); });
}

std::shared_ptr<WorkState> World::start_send(const CallOptions& call, Result<MessageTask> task) {
  return start_task(call, std::move(task), [this, id = call.stream.id](MessageTask value) { core_->send(id, std::move(value)); });
}

std::shared_ptr<WorkState> World::start_receive(const CallOptions& call, Result<MessageTask> task) {
  return start_task(call, std::move(task), [this, id = call.stream.id](MessageTask value) { core_->receive(id, std::move(value)); });
}

void World::run(const CallOptions& call, Result<CollectiveTask> task) {
  run_task(call, std::move(task), [this, id = call.stream.id](CollectiveTask value) { core_->start(id, std::move(value)); });
}

void World::run_send(const CallOptions& call, Result<MessageTask> task) {
  run_task(call, std::move(task), [this, id = call.stream.id](MessageTask value) { core_->send(id, std::move(value)); });
}

void World::run_receive(const CallOptions& call, Result<MessageTask> task) {
  run_task(call, std::move(task), [this, id = call.stream.id](MessageTask value) { core_->receive(id, std::move(value)); });
}

}  // namespace ringlet::native
