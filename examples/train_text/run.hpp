#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <ringlet/tensor.hpp>
#include <string>
#include <vector>

#include "act_sequence.hpp"
#include "corpus.hpp"
#include "parameter_store.hpp"
#include "shares.hpp"

namespace train_text {

/// A collective of the run. If it has a root, that is rank 0. The memory belongs to the run and is borrowed until `Run::exchanged`.
struct Exchange {
  enum class Kind : std::uint8_t { broadcast, all_sum, all_gather };
  Kind kind = Kind::broadcast;
  ringlet::ConstTensorView input;  // for a broadcast, the same memory as the output
  ringlet::TensorView output;
  std::uint16_t stream = 0;
};

/// Returns the seconds to record for `samples` samples that took `seconds` to compute.
using Timekeeper = std::function<double(int samples, double seconds)>;

/// One rank's part of a run. It never waits: it computes, and says which collective comes next. Its driver carries out the collective; this
/// is a native trainer with blocking calls or a page with promises. Only one thread at a time may use it.
class Run {
 public:
  /// All arguments must outlive the run, except `settings`, which is copied.
  Run(const Settings& settings, const Corpus& corpus, int rank, int ranks, Transformer<float>& model, ParameterStore& store);

  /// The next act. For a collective that `exchange` describes, call `exchange`, carry it out, then call `exchanged`. At `average`, call
  /// `begin_average`, average the gradients, then call `averaged`. At `validation`, `gradients` and `apply`, call `work` until it returns
  /// true. `checkpoint` and `sample` are carried out by the driver alone, which then calls `pass`.
  Act act() const { return acts_.act(); }
  int step() const { return acts_.step(); }

  /// Sets how many steps were done before this run; a negative number means that it cannot begin. Rank 0 must call this before `beginning`;
  /// the other ranks may, with the same number.
  void set_beginning(std::int64_t steps_done) { beginning_ = steps_done; }
  /// Computes at most `samples` sequences of the present act. Returns true when the act is done and the next one has come. If the store
  /// communicates during a pass, `samples` must be kAll.
  bool work(int samples);
  static constexpr int kAll = 1 << 30;
  Exchange exchange();
  /// Takes in the result of the exchange. Returns an empty string, or one sentence saying why training cannot continue. All ranks get such
  /// a sentence at the same act.
  std::string exchanged();
  void begin_average();
  void averaged();
  void pass();
  int committed() const { return acts_.committed(); }
  /// Takes up a run of others, who have committed so many steps. To be followed by regroup().
  void follow(int committed);
  /// Goes back to what follows the last committed step, as another rank of other ranks.
  void regroup(int rank, int ranks);

  /// Called as soon as this rank's part of a step's loss is known, which may be before the backward pass. `exchange_of_loss` may be started
  /// then on its own stream, and need be finished only at `loss_sum`.
  std::function<void()> on_loss;
  Exchange exchange_of_loss();

  double loss() const { return loss_; }                        // of the whole batch, in the last step; NaN before the first
  double validation_loss() const { return validation_loss_; }  // of the last evaluation of the held-out text
  const std::vector<int>& counts() const { return counts_; }   // how many sequences each rank takes in this step
  int share() const { return slice_of_batch().count; }
  double weight() const { return share(); }
  bool weighted() const;
  const std::vector<std::uint64_t>& hashes() const { return all_hashes_; }  // of the parameters, by rank, at the last comparison
  std::uint64_t own_hash() const { return all_hashes_[static_cast<std::size_t>(rank_)]; }
  int steps_compared() const { return steps_compared_; }  // number of steps done at the last comparison; negative before the first
  double seconds_per_sample() const;                      // at the last measurement; 0 before the first
  double training_seconds() const { return training_seconds_; }
  /// The fraction of the time of all steps so far in which this rank waited for the group. The next function returns its mean over all
  /// ranks at the end.
  double waiting_share() const { return training_seconds_ > 0 ? waiting_seconds_ / training_seconds_ : 0.0; }
  double mean_waiting_share() const { return mean_waiting_share_; }
  const Settings& settings() const { return settings_; }

  /// Tests use this to simulate slower ranks.
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
  ParameterStore& store_;
  Timekeeper timekeeper_;
  ActSequence acts_;
  Speeds speeds_;
  std::vector<int> counts_;

  int computed_ = 0;  // sequences of the present act that are done
  Clock::time_point act_began_;
  double act_communication_before_ = 0;
  Clock::time_point step_began_;
  double step_communication_before_ = 0;
  Clock::time_point wait_began_;

  // The memory that is exchanged.
  std::int64_t beginning_ = 0;
  std::vector<std::uint8_t> state_;
  double sum_ = 0;
  double loss_sum_ = 0;
  double my_seconds_ = 0;
  std::vector<double> all_seconds_;
  std::uint64_t my_hash_ = 0;
  std::vector<std::uint64_t> all_hashes_;

  double loss_ = std::numeric_limits<double>::quiet_NaN();
  double validation_loss_ = 0;
  int samples_since_speeds_ = 0;
  double seconds_since_speeds_ = 0;
  int steps_compared_ = -1;
  double training_seconds_ = 0;
  double waiting_seconds_ = 0;
  double mean_waiting_share_ = 0;
};

}  // namespace train_text
