#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/elastic.hpp>
#include <ringlet/error.hpp>
#include <ringlet/group.hpp>
#include <ringlet/trace.hpp>
#include <string>
#include <vector>

#include "corpus.hpp"
#include "options.hpp"
#include "parameter_store.hpp"
#include "run.hpp"

namespace train_text {

/// How the group of a run has become another.
struct Regrouping {
  int ranks = 0;          // that go on
  int ranks_before = 0;   // of the group before; fewer where ranks have joined
  bool waits = false;     // they are fewer than are needed, and wait for others to join
  std::string cause;      // of a loss
  double seconds = 0;     // for which this rank stood still
  bool rejoined = false;  // the others had gone on without this rank
  std::string rollback;   // what was lost with the ranks, and to which checkpoint all have gone back; empty if nothing was
};

/// A native rank's part of a run. It carries out the acts of its `Run` in order, with blocking calls. All members are collective: every
/// rank calls them in the same order. They throw `ringlet::Error` if the group fails and cannot go on without those that were lost.
class Trainer {
 public:
  /// `options` and `corpus` are the same on all ranks (see shared_inputs.hpp) and must outlive the trainer. `joins` says whether the other
  /// ranks train already.
  Trainer(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins = false);
  ~Trainer();

  /// Carries out the next act and returns it, or returns `Act::end` if nothing is left. If ranks were lost meanwhile, and the mode of
  /// training can go on without them, it returns `Act::regroup` instead, and goes back to what follows the last committed step. With
  /// `options.resume` the first act loads the newest checkpoint. Throws `InputError` if that one does not fit, or if a checkpoint exists
  /// and `options.resume` is false. Throws `std::runtime_error` on all ranks if training cannot continue: ranks whose parameters differ, or
  /// a loss that is not finite.
  Act advance();

  const ringlet::Group& group() const { return group_; }
  /// Known after `Act::regroup`.
  const Regrouping& regrouping() const { return regrouping_; }
  const Run& run() const { return *run_; }
  Run& run() { return *run_; }
  /// The number of steps done before this run. Known after `beginning`.
  int first_step() const { return first_step_; }
  const Transformer<float>& model() const { return model_; }
  ParameterStore& store() { return *store_; }
  const ParameterStore& store() const { return *store_; }
  /// The text that the model wrote. Known after `Act::sample`.
  const std::string& sample() const { return sample_; }

 private:
  void carry_out(Act act);
  bool goes_on_after(const ringlet::Error& error) const;
  bool is_short() const;
  bool admit();
  void await_others();
  void reform(const std::string& cause);
  bool enter_next_world();
  void settle();
  void go_back(const std::string& lost);
  void fill();
  void begin();
  void commit();
  bool has_checkpoints() const;
  ringlet::Group saving_group() const;
  void carry_out_exchange();
  void save();

  const Options& options_;
  const ringlet::MinRanks min_ranks_;
  const Corpus& corpus_;
  ringlet::Group group_;
  std::uint64_t text_hash_;
  Transformer<float> model_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Run> run_;
  std::optional<ringlet::Work> loss_sum_;        // runs from when the loss is known
  std::optional<ringlet::TraceSpan> step_span_;  // from the gradients to the updated parameters
  int first_step_ = 0;
  Regrouping regrouping_;
  std::optional<std::chrono::steady_clock::time_point> waits_until_;  // while there are fewer ranks than are needed
  bool lacks_state_;                                                  // this rank has joined, and has not been given the parameters yet
  std::string went_back_;
  std::string sample_;
};

}  // namespace train_text
