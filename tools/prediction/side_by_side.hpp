#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace ringlet::prediction {

/// Is told several times a second how many of the predictions are done, and of how many. Unset: nobody asks.
using Watch = std::function<void(std::size_t done, std::size_t all)>;

/// Runs the tasks on as many threads as there are cores, since each takes memory, and returns what they return, in their order. What a task
/// throws is thrown once all have ended.
template <class Result>
std::vector<Result> side_by_side(const std::vector<std::function<Result()>>& tasks, const Watch& watch) {
  std::vector<std::packaged_task<Result()>> waiting(tasks.begin(), tasks.end());
  std::atomic<std::size_t> next = 0, done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < waiting.size(); i = next++) {
      waiting[i]();
      ++done;
    }
  };
  std::vector<std::future<void>> workers;
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
  for (std::size_t i = 0; i < std::min(cores, tasks.size()); ++i) workers.push_back(std::async(std::launch::async, work));
  for (const std::future<void>& worker : workers)
    while (worker.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready)
      if (watch) watch(done, tasks.size());
  std::vector<Result> results;
  for (std::packaged_task<Result()>& task : waiting) results.push_back(task.get_future().get());
  return results;
}

}  // namespace ringlet::prediction
