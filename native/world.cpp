#include "native/world.hpp"

#include <unistd.h>

#include <utility>

namespace ringlet::native {

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
  std::atomic<bool> done{false};
  Status outcome;
  std::unique_ptr<Meeting> meeting;
  progress_.run_until(
      [&] {
        meeting = std::make_unique<Meeting>(progress_.loop(), *network_, *core_, config.meeting);
        const auto on_met = [&](const Status& status) {
          outcome = status;
          done = true;
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
      done);
  progress_.run([&] { meeting.reset(); });
  throw_if_failed(outcome);
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

}  // namespace ringlet::native
