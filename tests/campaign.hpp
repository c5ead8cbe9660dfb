#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::test {

/// Counts how often one kind of attack or accident was tried, and how often that went wrong. Prints one line at its end, from which
/// `scripts/soak --attack` makes the table of docs/guarantees.md.
class Campaign {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Campaign(std::string name) : name_(std::move(name)) {}
  ~Campaign() {
    std::string times;
    if (!seconds_.empty()) {
      std::sort(seconds_.begin(), seconds_.end());
      char text[64];
      std::snprintf(text, sizeof text, "%.3f s, %.3f s", seconds_[seconds_.size() / 2], seconds_.back());
      times = text;
    }
    std::printf("campaign | %s | %d | %d | %s\n", name_.c_str(), tries_, tries_ - well_, times.c_str());
  }
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  /// A try that goes_well() does not follow has failed.
  void begin(int count = 1) { tries_ += count; }
  void goes_well(int count = 1) { well_ += count; }
  /// It also took so long, from the accident until all was over.
  void goes_well_since(Clock::time_point accident) {
    goes_well();
    seconds_.push_back(std::chrono::duration<double>(Clock::now() - accident).count());
  }

 private:
  const std::string name_;
  int tries_ = 0, well_ = 0;
  std::vector<double> seconds_;
};

}  // namespace ringlet::test
