#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace ringlet {

/// What rounding to blocks has left out of a rank's gradients, which it adds to those of the next step (error feedback). A step's residuals
/// count once it is committed; until then those of the last committed step stay.
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
  /// Those of the step's next gradient that is sent in blocks, with `count` elements; zeros if the last step had another one there. Valid
  /// until clear(); the caller writes `next`.
  Pair& add(std::size_t count);
  /// The step counts.
  void commit();
  /// Forgets all of them, because the gradients that follow are others.
  void clear();

 private:
  std::deque<Pair> pairs_;  // in the order of the gradients
  std::size_t added_ = 0;   // in this step
};

}  // namespace ringlet
