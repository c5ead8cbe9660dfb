#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/elastic/growth.hpp"
#include "native/native_world.hpp"

namespace ringlet::native {

/// A member's part in forming the next world, of the members and of processes that join, while the present one goes on: an ordinary meeting
/// on a thread of its own. Any thread.
class Growth {
 public:
  /// Begins to meet the others at this coordinator, until `start.stop`, which is set, stops it. Where this rank is the coordinator, the
  /// port is 0.
  Growth(WorldConfig next, WorldStart start, Address coordinator);
  /// A growth that has failed before it began.
  Growth();
  /// Gives it up, and waits for its thread.
  ~Growth();
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  GrowthState state();
  /// Waits until this rank listens as the coordinator, and returns its port; 0 where it has failed.
  std::uint16_t await_port();
  /// Waits until it is not forming any more, or the time is over, and returns whether it is not.
  bool wait_for(std::chrono::milliseconds timeout);
  /// Makes it fail where it is forming.
  void stop(const Status& why) { stop_->stop(why); }
  /// The next world, also where it has failed since; null where its ranks have not met. To be called once it is not forming any more.
  std::shared_ptr<NativeWorld> take();

 private:
  /// What its thread and the next world tell, which may do so after the growth has ended.
  struct Progress {
    void met();
    void fail();
    void set_port(std::uint16_t to);

    std::mutex mutex;
    std::condition_variable changed;
    GrowthProgress growth;
    std::optional<std::uint16_t> port;
  };

  void form(WorldConfig next, const WorldStart& start, const Address& coordinator);
  void watch_world();

  const std::shared_ptr<MeetingStop> stop_;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::shared_ptr<NativeWorld> world_;  // written by the thread, before the growth is ready
  std::thread thread_;
};

}  // namespace ringlet::native
