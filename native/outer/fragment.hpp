#pragma once

#include <ringlet/tree.hpp>
#include <vector>

#include "core/gradients/residuals.hpp"

namespace ringlet::native {

/// Leaves of a tree that follow each other.
struct LeafRange {
  std::size_t begin = 0, end = 0;
};

/// Cuts a tree into `count` ranges, none of them empty, which have about as many bytes each. `count` is at most the number of leaves.
std::vector<LeafRange> cut_fragments(const Tree& parameters, int count);

/// Parameters that are averaged together.
class Fragment {
 public:
  /// `own`, a rank's parameters, and `shared` are parts of the same trees, and borrowed.
  Fragment(Tree own, Tree shared) : own_(std::move(own)), shared_(std::move(shared)) {}
  Fragment(const Fragment&) = delete;
  Fragment& operator=(const Fragment&) = delete;

  /// Computes what this rank's parameters differ by from the shared ones: shared - own, a gradient's sign. Zeros if this rank has used no
  /// samples, so that what it has cannot matter.
  const Tree& take_differences(bool has_samples);
  /// Of the last take_differences(), by now perhaps averaged.
  const Tree& differences() const { return differences_; }
  /// Multiplies them, in the arithmetic of their dtype.
  void scale_differences(double factor);
  /// own = mixing * own + (1 - mixing) * shared; with mixing 0 all bits of `shared`.
  void adopt(double mixing);

  const Tree& own() const { return own_; }
  const Tree& shared() const { return shared_; }
  Residuals residuals;  // of this rank's differences

 private:
  const Tree own_, shared_;
  std::vector<Tensor> memory_;
  Tree differences_;
};

}  // namespace ringlet::native
