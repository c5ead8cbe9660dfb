#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ringlet/tensor.hpp>
#include <string>
#include <vector>

#include "corpus.hpp"
#include "course.hpp"
#include "placement.hpp"
#include "shares.hpp"

namespace train_text {

/// A collective of the course. From or to rank 0 where it has a root. The memory is the run's until `Run::exchanged`.
struct Exchange {
  enum class Kind : std::uint8_t { broadcast, all_sum, all_gather };
  Kind kind = Kind::broadcast;
  ringlet::ConstTensorView input;  // of a broadcast: the output itself
  ringlet::TensorView output;
  std::uint16_t stream = 0;
};

/// What so many samples count as that took so many seconds to compute.
using Timekeeper = std::function<double(int samples, double seconds)>;

/// One rank's part of a run. It never waits: it computes, and says which collective comes next; who drives it, a native trainer with
/// blocking calls or a page with promises, carries that out. One thread at a time.
class Run {
 public:
  /// All but the values of `settings` must outlive the run.
  Run(const Settings& settings, const Corpus& corpus, int rank, int ranks, Transformer<float>& model, Placement& placement);

  /// What comes next. At an act that is an exchange: `exchange`, then, when it has been carried out, `exchanged`. At `average`:
  /// `begin_average`, the average, `averaged`. At `validation`, `gradients` and `apply`: `work` until it is done. At `checkpoint` and
  /// `sample`, which are the driver's own: `pass`.
  Act act() const { return course_.act(); }
  int step() const { return course_.step(); }

  /// Before `beginning`, on rank 0 (or on all ranks alike): how many steps were done before this run; negative: it cannot begin.
  void set_beginning(std::int64_t steps_done) { beginning_ = steps_done; }
  /// Computes at most `samples` sequences of the present act; true when it is done and the next one has come. On ranks whose placement
  /// moves something meanwhile, all at once: give kAll.
  bool work(int samples);
  static constexpr int kAll = 1 << 30;
  Exchange exchange();
  /// Takes in what the exchange brought. Empty, or one sentence saying why training cannot go on; all ranks get one at the same act.
  std::string exchanged();
  void begin_average();
  void averaged();
  void pass();

  /// Called as soon as this rank's part of a step's loss is known, perhaps before the backward pass: `exchange_of_loss` may be started
  /// then, on its own stream, and only be waited for at `loss_sum`.
  std::function<void()> on_loss;
  Exchange exchange_of_loss();

  double loss() const { return loss_; }                        // of the whole batch, in the last step
  double validation_loss() const { return validation_loss_; }  // of the last validation
  const std::vector<int>& counts() const { return counts_; }   // how many sequences each rank takes in this step
  int share() const { return slice_of_batch().count; }
  double weight() const { return share(); }
  bool weighted() const;
  const std::vector<std::uint64_t>& hashes() const { return all_hashes_; }  // by rank, when last compared
  std::uint64_t own_hash() const { return all_hashes_[static_cast<std::size_t>(rank_)]; }
  int steps_compared() const { return steps_compared_; }  // steps that were done then; negative: never
  double seconds_per_sample() const;                      // when last measured; 0: never
  double training_seconds() const { return training_seconds_; }
  /// This rank's share of the time of all steps so far that went into waiting for the group, and the mean of all ranks' at the end.
  double waiting_share() const { return training_seconds_ > 0 ? waiting_seconds_ / training_seconds_ : 0.0; }
  double mean_waiting_share() const { return mean_waiting_share_; }
  const Settings& settings() const { return settings_; }

  /// For tests: ranks that are slower than they are.
  void keep_time_by(Timekeeper timekeeper) { timekeeper_ = std::move(timekeeper); }

 private:
  using Clock = std::chrono::steady_clock;

  Slice slice_of_batch() const { return slice_of(counts_, rank_); }
  int windows() const;
  Slice slice_of_validation() const;
  bool validate(int samples);
  bool compute_gradients(int samples);
  void begin_step();
  void end_step();
  void go_on();
  std::string compare_hashes();
  void pack_state();
  void unpack_state();

  Settings settings_;
  const Corpus& corpus_;
  int rank_;
  int ranks_;
  Transformer<float>& model_;
  Placement& placement_;
  Timekeeper timekeeper_;
  Course course_;
  Speeds speeds_;
  std::vector<int> counts_;

  int computed_ = 0;  // sequences of the present act
  Clock::time_point act_began_;
  double act_communication_before_ = 0;
  Clock::time_point step_began_;
  double step_communication_before_ = 0;
  Clock::time_point wait_began_;

  // What is exchanged.
  std::int64_t beginning_ = 0;
  std::vector<std::uint8_t> state_;
  double sum_ = 0;
  double loss_sum_ = 0;
  double my_seconds_ = 0;
  std::vector<double> all_seconds_;
  std::uint64_t my_hash_ = 0;
  std::vector<std::uint64_t> all_hashes_;

  double loss_ = 0;
  double validation_loss_ = 0;
  int samples_since_speeds_ = 0;
  double seconds_since_speeds_ = 0;
  int steps_compared_ = -1;
  double training_seconds_ = 0;
  double waiting_seconds_ = 0;
  double mean_waiting_share_ = 0;
};

}  // namespace train_text
