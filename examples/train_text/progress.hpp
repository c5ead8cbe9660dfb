#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace train_text {

struct ProgressState {
  int step = 0;  // number of steps done
  int steps = 0;
  double loss = 0;
  double tokens_per_second = 0;  // 0: not known
  double communication_share = 0;
  double seconds_left = 0;
};

/// Returns a line of at most `width` columns with a bar and the numbers. A narrower line shows fewer numbers.
std::string progress_bar(const ProgressState& state, int width);

/// The same numbers without a bar, for a log.
std::string progress_line(const ProgressState& state);

/// Shows how far training has come. On a terminal this is one line that is redrawn, elsewhere a new line every few seconds.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `first_step` is the number of steps that were done at `start`, from when on the rate is reckoned. `tokens_per_step`: 0 if it varies.
  Progress(std::FILE* out, int first_step, int steps, double tokens_per_step, Clock::time_point start = Clock::now());
  /// Call this after each step. It draws if enough time has passed since the last drawing, and always after the last step.
  void update(int step, double loss, double communication_share);
  /// Writes a line that stays.
  void note(const std::string& line);

 private:
  std::FILE* out_;
  bool on_terminal_;
  int first_step_;
  int steps_;
  double tokens_per_step_;
  Clock::time_point start_;
  Clock::time_point next_drawing_ = start_;
};

}  // namespace train_text
