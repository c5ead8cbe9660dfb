#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "print.hpp"

namespace train_text {
namespace {

constexpr std::chrono::milliseconds kBetweenDrawings{100};
constexpr std::chrono::seconds kBetweenLines{5};

std::string minutes_and_seconds(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// The numbers are sorted by importance, since a narrow terminal shows only the first ones.
std::vector<std::string> numbers(const ProgressState& state) {
  std::vector<std::string> all{fmt::format("{}/{}", state.step, state.steps), fmt::format("loss {:.3f}", state.loss),
                               minutes_and_seconds(state.seconds_left) + " left"};
  if (state.tokens_per_second > 0) all.push_back(fmt::format("{:.0f} tokens/s", state.tokens_per_second));
  all.push_back(fmt::format("{:.1f} % communication", 100 * state.communication_share));
  return all;
}

// Returns the width of the terminal that shows `out`, which is its own or the launcher's, or 0 if there is none.
int terminal_width(std::FILE* out) {
  winsize size{};
  if (isatty(fileno(out)) == 1) return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  const char* columns = std::getenv("RINGLET_TERMINAL_COLUMNS");
  return columns != nullptr ? std::atoi(columns) : 0;
}

}  // namespace

std::string progress_bar(const ProgressState& state, int width) {
  constexpr std::size_t kShortestBar = 10;
  constexpr std::size_t kLongestBar = 40;
  const auto columns = static_cast<std::size_t>(std::max(width, 0));
  std::string text;
  for (const std::string& number : numbers(state)) {
    if (text.size() + 2 + number.size() > columns) break;
    text += (text.empty() ? "" : "  ") + number;
  }
  if (columns < text.size() + kShortestBar + 4) return text;
  const std::size_t length = std::min(columns - text.size() - 4, kLongestBar);
  const std::size_t done = length * static_cast<std::size_t>(state.step) / static_cast<std::size_t>(std::max(state.steps, 1));
  return fmt::format("[{}{}] {}", std::string(done, '='), std::string(length - done, ' '), text);
}

std::string progress_line(const ProgressState& state) { return fmt::format("step {}", fmt::join(numbers(state), "  ")); }

Progress::Progress(std::FILE* out, int first_step, int steps, double tokens_per_step, Clock::time_point start)
    : out_(out),
      on_terminal_(terminal_width(out) > 0),
      first_step_(first_step),
      steps_(steps),
      tokens_per_step_(tokens_per_step),
      start_(start) {}

void Progress::update(int step, double loss, double communication_share) {
  const Clock::time_point now = Clock::now();
  const bool last = step == steps_;
  if (now < next_drawing_ && !last) return;
  const double per_step = std::chrono::duration<double>(now - start_).count() / (step - first_step_);
  const ProgressState state{.step = step,
                            .steps = steps_,
                            .loss = loss,
                            .tokens_per_second = tokens_per_step_ / per_step,
                            .communication_share = communication_share,
                            .seconds_left = per_step * (steps_ - step)};
  if (on_terminal_) {
    // Carriage return, line, erase to the right: this avoids flicker and leaves nothing of a longer line behind.
    print(out_, "\r{}\x1b[K{}", progress_bar(state, terminal_width(out_) - 1), last ? "\n" : "");
    next_drawing_ = now + kBetweenDrawings;
  } else {
    print(out_, "{}\n", progress_line(state));
    next_drawing_ = now + kBetweenLines;
  }
}

void Progress::note(const std::string& line) { print(out_, "{}{}\n", on_terminal_ ? "\r\x1b[K" : "", line); }

}  // namespace train_text
