#include "native/dispatcher.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "native/own_process.hpp"

namespace ringlet::native {

namespace {

class Dispatcher {
 public:
  void start() {
    const std::lock_guard lock(mutex_);
    if (!runs_) std::thread([this] { run(); }).detach();
    runs_ = true;
  }
  void add(Calls calls) noexcept {
    const std::lock_guard lock(mutex_);
    calls_.splice(calls_.end(), calls);
    added_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      added_.wait(lock, [this] { return !calls_.empty(); });
      Calls now = std::move(calls_);
      calls_.clear();
      lock.unlock();
      // What a call has kept alive goes before the next one runs.
      for (; !now.empty(); now.pop_front()) now.front()();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  Calls calls_;
  bool runs_ = false;
};

PerProcess<Dispatcher> dispatchers;

}  // namespace

void start_dispatcher() { dispatchers.get().start(); }
void dispatch(Calls calls) noexcept { dispatchers.get().add(std::move(calls)); }

}  // namespace ringlet::native
