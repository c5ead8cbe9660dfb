#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace ringlet {

/// What a rank's rounding to blocks has left out, of its gradients and of the means whose parts it owned, which it adds to its gradients of
/// the next step (error feedback). So the sum over the ranks is all that the means have not had yet. A step's residuals count once it is
/// committed; until then those of the last committed step stay.
class Residuals {
 public:
  /// One gradient's, an f32 per element.
  struct Pair {
    std::vector<float> committed;
    std::vector<float> next;
    bool is_written = false;  // `next` is of the step
  };

  /// Begins a step; what one that was not committed has left is dropped.
  void begin();
  /// Those of gradient number `number`, with `count` elements; zeros if it had another number of elements before. Valid until clear(); the
  /// caller writes `next`.
  Pair& at(std::size_t number, std::size_t count);
  /// The same of the step's next gradient that is sent in blocks, where gradients are known by their order alone.
  Pair& add(std::size_t count) { return at(added_++, count); }
  /// The step counts.
  void commit();
  /// One more than the largest number of a gradient here.
  std::size_t size() const { return pairs_.size(); }
  /// Those of the last committed step, of a gradient whose number is below size(); none if it was not sent in blocks.
  std::span<float> committed(std::size_t number) { return pairs_[number].committed; }
  /// Replaces them, outside of a step.
  void set(std::size_t number, std::vector<float> committed);
  /// Forgets all of them, because the gradients that follow are others.
  void clear();

 private:
  std::deque<Pair> pairs_;  // by the gradients' numbers
  std::size_t added_ = 0;   // in this step
};

}  // namespace ringlet
