#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "log_file.hpp"

namespace train_text {

/// The file of --log-losses, which rank 0 writes. Every rank keeps the losses that rank 0 may not have written yet, so that where rank 0 is
/// lost the next one goes on without a gap. Steps are then those of the rank that writes them: with --inner-steps each has losses of its
/// own.
class LossLog {
 public:
  /// An empty path means that there is none. `steps_per_commit` is how many steps the ranks take before all know that all have taken them.
  LossLog(std::filesystem::path path, int steps_per_commit) : path_(std::move(path)), steps_per_commit_(steps_per_commit) {}

  /// Rank 0 calls this before the training. Throws `InputError` if the file cannot be written.
  void begin(bool appends);
  /// This rank has become rank 0 when `committed` steps were: it goes on where the file ends, which is that of the rank before it where
  /// they share a folder.
  void take_over(int committed);
  /// This rank is not rank 0 any more.
  void stop() { file_.close(); }
  /// Every rank calls this after each of its steps.
  void add(int step, double loss);
  void close() { file_.close(); }
  bool has_failed() const { return file_.has_failed(); }

 private:
  int round_end(int step) const { return (step / steps_per_commit_ + 1) * steps_per_commit_; }
  void write(int step, double loss);

  std::filesystem::path path_;
  int steps_per_commit_;
  LogFile file_;
  std::vector<std::pair<int, double>> kept_;  // since the last commit
  int last_written_ = -1;                     // by the rank before this one, until this one has got further
  int last_of_others_ = -1;                   // by the ranks that have gone on without this one
};

}  // namespace train_text
