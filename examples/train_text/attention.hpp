#pragma once

#include "layers.hpp"

namespace train_text {

/// Causal attention with several heads. Sequences are independent of each other; a token sees itself and the tokens before it.
template <class T>
class CausalAttention {
 public:
  explicit CausalAttention(int heads) : heads_(heads) {}

  /// `qkv` holds queries, keys and values side by side, each as wide as `output` will be. Rows are tokens; each sequence has `length` of
  /// them.
  void forward(const Matrix<T>& qkv, int length, Matrix<T>& output);
  /// `qkv` and `length` must be those that were given to forward.
  void backward(const Matrix<T>& qkv, int length, const Matrix<T>& output_gradient, Matrix<T>& qkv_gradient);

 private:
  int heads_;
  Matrix<T> weights_;  // length x length for each sequence and head, stacked by rows
  Matrix<T> weight_gradients_;
};

}  // namespace train_text
