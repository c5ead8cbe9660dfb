#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "settings.hpp"

namespace train_text {

/// What a rank does next. The order is the same on all ranks, native or browser, because all of them ask the same `Course`.
/// In brackets: the collective, all of them on stream 0 except loss_sum, on stream 1.
///
/// Before the course rank 0 sends what it is about: [broadcast of a `Record`], [broadcast of as many bytes as that says: the folder for
/// checkpoints, then the text; or the reason why there will be no run].
enum class Act : std::uint8_t {
  beginning,       // [broadcast i64: how many steps are done already; negative: rank 0 could not load them]
  parameters,      // [broadcast f32: rank 0's; nothing where they are sharded]
  state,           // [broadcast u8: of rank 0's optimizer; only where a run with browsers is resumed]
  validation,      // the loss of this rank's windows of the held-out text
  validation_sum,  // [all-reduce sum, 1 f64]
  gradients,       // forward and backward over this rank's share of the batch
  average,         // [weighted average of the gradients, part by part as `Transformer::gradient_parts` names them]
  apply,           // the optimizer's step
  loss_sum,        // [all-reduce sum, 1 f64]
  speeds,          // [all-gather, 1 f64 each: seconds per sequence since the last time; 0: none was computed]
  hashes,          // [all-gather, 1 u64 each: of the parameters]
  checkpoint,      // native ranks with files save
  waiting,         // [all-reduce sum, 1 f64: which part of its time a rank waited for the others]
  sample,          // the model writes a text, if it is to
  end,
};
/// As written above: "loss_sum".
std::string_view name_of(Act act);
/// Whether it is a collective that `Run::exchange` describes. `average` is one, too, but each kind of rank does it in its own way.
bool is_exchange(Act act);

/// The acts of a run, one after the other.
class Course {
 public:
  explicit Course(const Settings& settings);

  Act act() const { return acts_[next_]; }
  /// The number of the step under way, from 0, or of how many are done.
  int step() const { return step_; }
  /// After `beginning`: from which step on.
  void begin_at(int step);
  void go_on();

 private:
  void plan_step();
  void plan_end();

  Settings settings_;
  int step_ = 0;
  bool step_planned_ = false;
  std::vector<Act> acts_;
  std::size_t next_ = 0;
};

}  // namespace train_text
