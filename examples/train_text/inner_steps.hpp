#pragma once

#include <cstdint>
#include <limits>
#include <ringlet/schedules.hpp>
#include <string>

#include "batches.hpp"
#include "corpus.hpp"
#include "replica.hpp"

namespace train_text {

/// The steps that a rank takes alone in a run with `inner_steps`. It takes the same sequences as if gradients were averaged in each step,
/// so the ranks' are disjoint. Only one thread at a time may use it.
class InnerSteps {
 public:
  /// All arguments must outlive it, except `settings`, which is copied.
  InnerSteps(const Settings& settings, const Corpus& corpus, Transformer<float>& model, Replica& replica);

  /// Begins the step of this number, as one of the ranks that train now.
  void begin(std::uint64_t number, int rank, int ranks);
  /// Computes at most `samples` sequences of it. Returns true when the step has been taken, or cannot be: see problem(). A rank without a
  /// sequence changes nothing.
  bool work(int samples);

  /// One sentence that says why training cannot go on, or an empty one.
  const std::string& problem() const { return problem_; }
  /// The number of the first step that was begun; -1 before.
  int first() const { return first_; }
  /// How many of the group's steps are done, as far as this rank knows: steps that it has left out count, too.
  int done() const { return done_; }
  /// How many sequences of the step under way, or of the last one, are this rank's.
  int share() const { return mine_.count; }
  /// The mean loss of these in the last step; NaN before the first.
  double loss() const { return loss_; }
  /// How many sequences this rank has computed, and for how many seconds.
  ///@{
  double samples() const { return samples_; }
  double seconds() const { return seconds_; }
  ///@}

 private:
  void compute(Slice slice);
  void finish();

  Settings settings_;
  const Corpus& corpus_;
  Transformer<float>& model_;
  Replica& replica_;
  const ringlet::Schedule learning_rate_;  // by the group's steps
  std::uint64_t number_ = 0;
  Slice mine_{0, 0};
  int computed_ = 0;
  double loss_sum_ = 0;
  std::string problem_;
  int first_ = -1;
  int done_ = 0;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  double samples_ = 0;
  double seconds_ = 0;
};

}  // namespace train_text
