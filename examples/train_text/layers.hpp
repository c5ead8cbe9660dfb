#pragma once

#include <Eigen/Core>

#include "batches.hpp"
#include "module.hpp"

// The layers of the model. Activations have one row per token. A layer's forward pass keeps what its backward pass needs; the backward
// pass takes the loss' gradient by the output, writes the gradients of its parameters into its module's memory (it overwrites, it does not
// add) and gives the gradient by the input. The module has values during both passes, and memory for gradients during the backward pass.
// Included only by the model's own sources: Eigen's code is compiled with their flags.
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
  /// `input` is what forward was given.
  void backward(const Matrix<T>& input, const Matrix<T>& output_gradient, Matrix<T>& input_gradient);

 private:
  Module<T>& module_;
  int inputs_;
  int outputs_;
  std::size_t weight_;
  std::size_t bias_;
};

/// Each token's features to mean 0 and variance 1, then a learned gain and bias.
template <class T>
class LayerNorm {
 public:
  LayerNorm(Module<T>& module, const std::string& name, int features);
  void forward(const Matrix<T>& input, Matrix<T>& output);
  /// Adds to `input_gradient`: the layer stands at the beginning of a residual branch.
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
  /// In place: turns the gradient by the output into the one by the input. `input` is what forward was given.
  void backward(const Matrix<T>& input, Matrix<T>& gradient) const;

 private:
  Matrix<T> tanh_;
};

/// A learned vector for each byte plus one for each position.
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

/// Mean cross-entropy of the batch's targets, in nats. Turns `logits` into the loss' gradient by them.
template <class T>
double cross_entropy(const Batch& batch, Matrix<T>& logits);

}  // namespace train_text
