#pragma once

#include <chrono>

namespace train_text {

/// Adds up the time that is spent on one kind of work.
class Stopwatch {
 public:
  /// Runs `work` and adds its duration.
  template <class Work>
  void time(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    total_ += std::chrono::steady_clock::now() - start;
  }
  double seconds() const { return std::chrono::duration<double>(total_).count(); }

 private:
  std::chrono::steady_clock::duration total_{};
};

}  // namespace train_text
