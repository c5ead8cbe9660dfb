#pragma once

#include <Eigen/Core>

#include "batches.hpp"
#include "module.hpp"

// The layers of the model. Activations have one row per token. A layer's forward pass keeps what its backward pass needs. The backward pass
// takes the gradient of the loss with respect to the layer's output, and returns that with respect to its input. It writes the gradients of
// the parameters into its module's memory, overwriting what is there. The module must have values during both passes, and memory for
// gradients during the backward pass. Only the model's own sources include this header, so that Eigen's code is compiled with their flags.
namespace train_text {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Row = Eigen::Matrix<T, 1, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Column = Eigen::Matrix<T, Eigen::Dynamic, 1>;

/// The model reads and writes bytes, not words.
inline constexpr int kByteValues = 256;

/// y = x W + b
template <class T>
class Linear {
 public:
  Linear(Module<T>& module, const std::string& name, int inputs, int outputs, double deviation);
  void forward(const Matrix<T>& input, Matrix<T>& output);
  /// `input` must be the one given to forward.
  void backward(const Matrix<T>& input, const Matrix<T>& output_gradient, Matrix<T>& input_gradient);

 private:
  Module<T>& module_;
  int inputs_;
  int outputs_;
  std::size_t weight_;
  std::size_t bias_;
};

/// Normalises each token's features to mean 0 and variance 1, then applies a learned gain and bias.
template <class T>
class LayerNorm {
 public:
  LayerNorm(Module<T>& module, const std::string& name, int features);
  void forward(const Matrix<T>& input, Matrix<T>& output);
  /// Adds to `input_gradient` instead of overwriting it, because the layer is at the start of a residual branch.
  void backward_add(const Matrix<T>& output_gradient, Matrix<T>& input_gradient);

 private:
  Module<T>& module_;
  int features_;
  std::size_t gain_;
  std::size_t bias_;
  Matrix<T> normalised_;
  Column<T> inverse_deviation_;
};

/// GELU in its tanh form, element by element.
template <class T>
class Gelu {
 public:
  void forward(const Matrix<T>& input, Matrix<T>& output);
  /// Turns the gradient with respect to the output into that with respect to the input, in place. `input` must be the one given to forward.
  void backward(const Matrix<T>& input, Matrix<T>& gradient) const;

 private:
  Matrix<T> tanh_;
};

/// The sum of a learned vector for each byte and a learned vector for each position.
template <class T>
class Embedding {
 public:
  Embedding(Module<T>& module, int context, int features);
  void forward(const Batch& batch, Matrix<T>& output);
  void backward(const Batch& batch, const Matrix<T>& output_gradient);

 private:
  Module<T>& module_;
  int context_;
  int features_;
  std::size_t bytes_;
  std::size_t positions_;
};

/// Returns the mean cross-entropy of the batch's targets in nats, and overwrites `logits` with the gradient of the loss with respect to
/// them.
template <class T>
double cross_entropy(const Batch& batch, Matrix<T>& logits);

}  // namespace train_text
