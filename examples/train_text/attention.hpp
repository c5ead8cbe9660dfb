#pragma once

#include "layers.hpp"

namespace train_text {

/// Causal attention with several heads, each sequence by itself: a token sees itself and the tokens before it.
template <class T>
class CausalAttention {
 public:
  explicit CausalAttention(int heads) : heads_(heads) {}

  /// `qkv` holds queries, keys and values side by side, each as wide as `output` will be. Rows are tokens, `length` to a sequence.
  void forward(const Matrix<T>& qkv, int length, Matrix<T>& output);
  /// `qkv` and `length` are what forward was given.
  void backward(const Matrix<T>& qkv, int length, const Matrix<T>& output_gradient, Matrix<T>& qkv_gradient);

 private:
  int heads_;
  Matrix<T> weights_;  // one length x length square per sequence and head, below each other
  Matrix<T> weight_gradients_;
};

}  // namespace train_text
