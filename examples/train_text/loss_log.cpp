#include "loss_log.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <string>
#include <system_error>

namespace train_text {
namespace {

constexpr const char* kOption = "--log-losses";

/// Where a file ends that another rank has written: the step of its last whole line, -1 without one, and whether it ends with a part of
/// one.
struct End {
  int step = -1;
  bool is_broken = false;
};

End end_of(const std::filesystem::path& path) {
  End end;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return end;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    end.is_broken = file.eof();
    if (!end.is_broken) std::from_chars(line.data(), line.data() + line.size(), end.step);
  }
  return end;
}

}  // namespace

void LossLog::begin(bool appends) {
  if (!path_.empty()) file_.open(path_, kOption, appends);
}

void LossLog::take_over(int committed) {
  if (path_.empty()) return;
  last_of_others_ = -1;
  const End end = end_of(path_);
  last_written_ = end.step;
  file_.open_late(path_, kOption, true);
  if (end.is_broken) file_.write("\n");
  for (const auto& [step, loss] : kept_)
    if (step >= committed - steps_per_commit_) write(step, loss);
}

void LossLog::add(int step, double loss) {
  if (path_.empty()) return;
  if (!kept_.empty() && (step <= kept_.back().first || step >= round_end(kept_.back().first))) kept_.clear();
  kept_.emplace_back(step, loss);
  write(step, loss);
}

void LossLog::write(int step, double loss) {
  if (!file_.is_open()) return;
  // The others have gone on without this rank, which has not learned of it yet.
  if (file_.has_grown()) last_of_others_ = end_of(path_).step;
  if (step <= last_of_others_) return;
  // A file that ends later than the rank before this one can have got is that of another run.
  if (step <= last_written_ && last_written_ < round_end(step)) return;
  last_written_ = -1;
  file_.write(fmt::format("{} {}\n", step, loss));
}

}  // namespace train_text
