#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "settings.hpp"

namespace train_text {

/// The next thing that a rank does. The order is the same on all ranks, native or browser, because all of them ask the same `ActSequence`.
/// The collective of each act stands in brackets. All collectives use stream 0, except loss_sum, which uses stream 1.
///
/// Before the first act rank 0 broadcasts an encoded `Announcement`, and then as many bytes as that says. Those bytes are the folder for
/// checkpoints followed by the text, or the reason why there will be no run.
enum class Act : std::uint8_t {
  beginning,       // [broadcast i64: the number of steps already done; negative if rank 0 could not load the checkpoint]
  parameters,      // [broadcast f32: rank 0's parameters; no elements if they are sharded]
  state,           // [broadcast u8: the state of rank 0's optimizer; only if a run with browsers is resumed]
  validation,      // the loss of this rank's windows of the held-out text
  validation_sum,  // [all-reduce sum, 1 f64]
  gradients,       // forward and backward over this rank's share of the batch
  average,         // [weighted average of the gradients, part by part as `Transformer::gradient_parts` names them]
  loss_sum,        // [all-reduce sum, 1 f64]
  apply,           // [elastic groups: agree()] the optimizer's step, which commits the step: on all ranks or on none
  speeds,          // [all-gather, 1 f64 each: seconds per sequence since the last time; 0 if none was computed]
  hashes,          // [all-gather, 1 u64 each: the hash of the parameters]
  checkpoint,      // native ranks with files save
  waiting,         // [all-reduce sum, 1 f64: the fraction of its time that a rank waited for the others]
  sample,          // the model writes a text, if one was asked for
  end,
  regroup,  // [reform(), admit()] ranks were lost, or have joined, and all others go on; in no sequence
};
/// Returns the act's name as written above, for example "loss_sum".
std::string_view name_of(Act act);
/// Tells whether the act is a collective that `Run::exchange` describes. `average` is a collective too, but native ranks and browsers carry
/// it out in different ways.
bool is_exchange(Act act);

/// The acts of a run in order.
class ActSequence {
 public:
  explicit ActSequence(const Settings& settings);

  Act act() const { return acts_[next_]; }
  /// The number of the step under way, counted from 0. Between steps it is the number of steps done.
  int step() const { return step_; }
  /// Sets the first step of this run. It is called after `beginning`.
  void begin_at(int step);
  void go_on();
  /// Goes back to what follows the last committed step or, if none was committed, to the beginning. When a rank is lost, the others may be
  /// at different acts, but all have committed the same steps.
  void go_back();
  /// How many steps are committed, as far as this run knows: 0 until it has committed one itself, or goes on from where others are.
  int committed() const { return committed_; }
  /// Takes up a run of others, who have committed so many steps. To be followed by go_back().
  void follow(int committed) { committed_ = committed; }

 private:
  void plan_step();
  std::vector<Act> acts_after_commit() const;
  void plan_end();

  Settings settings_;
  int step_ = 0;
  bool step_planned_ = false;
  int committed_ = 0;
  std::vector<Act> acts_;
  std::size_t next_ = 0;
};

}  // namespace train_text
