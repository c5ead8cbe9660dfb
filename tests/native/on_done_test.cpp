#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Collects what works tell when they are done.
class Told {
 public:
  std::function<void(const Status&)> listener() {
    return [this](const Status& status) {
      const std::lock_guard lock(mutex_);
      all_.push_back(status);
      threads_.push_back(std::this_thread::get_id());
      changed_.notify_all();
    };
  }
  std::vector<Status> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_.size() >= count; });
    return all_;
  }
  std::vector<std::thread::id> threads() {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Status> all_;
  std::vector<std::thread::id> threads_;
};

/// Returns once everything that was given to the dispatcher before has run.
void flush_dispatcher() {
  Told told;
  Work().on_done(told.listener());
  told.await(1);
}

}  // namespace

TEST_CASE("a work tells once that it is done, on a thread of its own, whenever it was asked to") {
  Told told;
  run_ranks(2, [&](Group& group) {
    std::vector<float> value{1};
    Work work = group.all_reduce_async(ReduceOp::sum, value, value);
    if (group.rank() == 0) work.on_done(told.listener());
    if (group.rank() == 0) work.on_done(told.listener());
    work.wait();
    if (group.rank() == 0) work.on_done(told.listener());
    if (group.rank() == 0) Work().on_done(told.listener());
    group.barrier();
  });
  for (const Status& status : told.await(4)) CHECK(status.ok());
  flush_dispatcher();
  CHECK(told.await(4).size() == 4);
  for (const auto& thread : told.threads()) CHECK((thread == told.threads().front() && thread != std::this_thread::get_id()));
}

TEST_CASE("the call-backs of a work run in the order in which they were given") {
  std::vector<int> order;
  run_ranks(2, [&](Group& group) {
    float value = 1;
    if (group.rank() == 0) {
      Work work = group.recv_async(std::span(&value, 1), 1);
      for (int number = 0; number < 8; ++number) work.on_done([&order, number](const Status&) { order.push_back(number); });
      group.barrier();
      work.wait();
      work.on_done([&order](const Status&) { order.push_back(8); });
    } else {
      group.barrier();
      group.send(std::span(&value, 1), 0);
    }
  });
  flush_dispatcher();
  CHECK(order == std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("works that are gone, that fail, and that could not begin tell it, too") {
  Told gone, failed, refused;
  run_ranks(2, [&](Group& group) {
    std::vector<float> value{1}, none{2};
    if (group.rank() == 0) group.recv_async(value, 1).on_done(gone.listener());
    if (group.rank() == 1) group.send(value, 0);
    group.barrier();
    if (group.rank() == 0) {
      group.broadcast_async(value, 7).on_done(refused.listener());
      Work lost = group.recv_async(none, 1);
      lost.on_done(failed.listener());
      group.leave();
    }
    expect(failed.await(1).front().code() == Errc::cancelled, "a work of a group that was left");
  });
  CHECK(gone.await(1).front().ok());
  CHECK(refused.await(1).front().code() == Errc::invalid_argument);
}

TEST_CASE("a call-back may use the library, and free the last that is left of a group") {
  Told told;
  run_ranks(2, [&](Group& group) {
    std::vector<float> value{1};
    auto work = std::make_shared<Work>(group.all_reduce_async(ReduceOp::sum, value, value));
    Work& waited = *work;
    waited.on_done([work = std::move(work), part = std::make_shared<std::optional<Group>>(group.split(0)), &told](const Status& status) {
      CHECK(work->done());
      CHECK((*part)->links() != "none");
      told.listener()(status);
    });
    group.barrier();
    told.await(1);
  });
  CHECK(told.await(2).size() == 2);
}
