#include "layers.hpp"

#include <cmath>

namespace train_text {
namespace {

// GELU approximates the distribution function of the normal distribution by (1 + tanh(kGelu * (x + kCubic * x^3))) / 2.
constexpr double kGelu = 0.7978845608028654;
constexpr double kCubic = 0.044715;

// There are two versions, because gradients may be written and parameter values only read.
template <class T>
Eigen::Map<Matrix<T>> as_matrix(T* data, int rows, int columns) {
  return {data, rows, columns};
}
template <class T>
Eigen::Map<const Matrix<T>> as_matrix(const T* data, int rows, int columns) {
  return {data, rows, columns};
}
template <class T>
Eigen::Map<Row<T>> as_row(T* data, int columns) {
  return {data, columns};
}
template <class T>
Eigen::Map<const Row<T>> as_row(const T* data, int columns) {
  return {data, columns};
}

}  // namespace

template <class T>
Linear<T>::Linear(Module<T>& module, const std::string& name, int inputs, int outputs, double deviation)
    : module_(module),
      inputs_(inputs),
      outputs_(outputs),
      weight_(module.add(name + ".weight", {inputs, outputs}, 0, deviation)),
      bias_(module.add(name + ".bias", {outputs}, 0, 0)) {}

template <class T>
void Linear<T>::forward(const Matrix<T>& input, Matrix<T>& output) {
  output.noalias() = input * as_matrix(module_.value(weight_), inputs_, outputs_);
  output.rowwise() += as_row(module_.value(bias_), outputs_);
}

template <class T>
void Linear<T>::backward(const Matrix<T>& input, const Matrix<T>& output_gradient, Matrix<T>& input_gradient) {
  as_matrix(module_.gradient(weight_), inputs_, outputs_).noalias() = input.transpose() * output_gradient;
  as_row(module_.gradient(bias_), outputs_) = output_gradient.colwise().sum();
  input_gradient.noalias() = output_gradient * as_matrix(module_.value(weight_), inputs_, outputs_).transpose();
}

template <class T>
LayerNorm<T>::LayerNorm(Module<T>& module, const std::string& name, int features)
    : module_(module),
      features_(features),
      gain_(module.add(name + ".gain", {features}, 1, 0)),
      bias_(module.add(name + ".bias", {features}, 0, 0)) {}

template <class T>
void LayerNorm<T>::forward(const Matrix<T>& input, Matrix<T>& output) {
  constexpr T kEpsilon = T(1e-5);
  const auto gain = as_row(module_.value(gain_), features_);
  const auto bias = as_row(module_.value(bias_), features_);
  normalised_.resize(input.rows(), input.cols());
  inverse_deviation_.resize(input.rows());
  output.resize(input.rows(), input.cols());
  for (Eigen::Index token = 0; token < input.rows(); ++token) {
    auto row = normalised_.row(token);
    row = input.row(token).array() - input.row(token).mean();
    inverse_deviation_[token] = 1 / std::sqrt(row.squaredNorm() / static_cast<T>(features_) + kEpsilon);
    row *= inverse_deviation_[token];
    output.row(token) = row.cwiseProduct(gain) + bias;
  }
}

template <class T>
void LayerNorm<T>::backward_add(const Matrix<T>& output_gradient, Matrix<T>& input_gradient) {
  const auto gain = as_row(module_.value(gain_), features_);
  as_row(module_.gradient(gain_), features_) = output_gradient.cwiseProduct(normalised_).colwise().sum();
  as_row(module_.gradient(bias_), features_) = output_gradient.colwise().sum();
  Row<T> scaled(features_);
  for (Eigen::Index token = 0; token < output_gradient.rows(); ++token) {
    const auto normalised = normalised_.row(token);
    scaled = output_gradient.row(token).cwiseProduct(gain);
    const T mean = scaled.mean();
    const T projection = scaled.dot(normalised) / static_cast<T>(features_);
    input_gradient.row(token).array() += inverse_deviation_[token] * (scaled.array() - mean - normalised.array() * projection);
  }
}

template <class T>
void Gelu<T>::forward(const Matrix<T>& input, Matrix<T>& output) {
  const auto x = input.array();
  tanh_ = (T(kGelu) * x * (1 + T(kCubic) * x.square())).tanh();
  output = T(0.5) * x * (1 + tanh_.array());
}

template <class T>
void Gelu<T>::backward(const Matrix<T>& input, Matrix<T>& gradient) const {
  const auto x = input.array();
  const auto t = tanh_.array();
  gradient.array() *= T(0.5) * (1 + t) + T(0.5 * kGelu) * x * (1 - t.square()) * (1 + T(3 * kCubic) * x.square());
}

template <class T>
Embedding<T>::Embedding(Module<T>& module, int context, int features)
    : module_(module),
      context_(context),
      features_(features),
      bytes_(module.add("bytes", {kByteValues, features}, 0, 0.1)),
      positions_(module.add("positions", {context, features}, 0, 0.1)) {}

template <class T>
void Embedding<T>::forward(const Batch& batch, Matrix<T>& output) {
  const auto bytes = as_matrix(module_.value(bytes_), kByteValues, features_);
  const auto positions = as_matrix(module_.value(positions_), context_, features_);
  output.resize(static_cast<Eigen::Index>(batch.sequences) * batch.length, features_);
  for (int sequence = 0, token = 0; sequence < batch.sequences; ++sequence) {
    for (int position = 0; position < batch.length; ++position, ++token) {
      output.row(token) = bytes.row(batch.input(sequence, position)) + positions.row(position);
    }
  }
}

template <class T>
void Embedding<T>::backward(const Batch& batch, const Matrix<T>& output_gradient) {
  auto bytes = as_matrix(module_.gradient(bytes_), kByteValues, features_);
  auto positions = as_matrix(module_.gradient(positions_), context_, features_);
  bytes.setZero();
  positions.setZero();
  for (int sequence = 0, token = 0; sequence < batch.sequences; ++sequence) {
    for (int position = 0; position < batch.length; ++position, ++token) {
      bytes.row(batch.input(sequence, position)) += output_gradient.row(token);
      positions.row(position) += output_gradient.row(token);
    }
  }
}

template <class T>
double cross_entropy(const Batch& batch, Matrix<T>& logits) {
  const T share = T(1) / static_cast<T>(logits.rows());
  double sum = 0;
  for (int sequence = 0, token = 0; sequence < batch.sequences; ++sequence) {
    for (int position = 0; position < batch.length; ++position, ++token) {
      auto row = logits.row(token);
      const int target = batch.target(sequence, position);
      const T largest = row.maxCoeff();
      const T target_logit = row[target];
      row = (row.array() - largest).exp();
      const T total = row.sum();
      sum += static_cast<double>(std::log(total) + largest - target_logit);
      row *= share / total;
      row[target] -= share;
    }
  }
  return sum / static_cast<double>(logits.rows());
}

template class Linear<float>;
template class Linear<double>;
template class LayerNorm<float>;
template class LayerNorm<double>;
template class Gelu<float>;
template class Gelu<double>;
template class Embedding<float>;
template class Embedding<double>;
template double cross_entropy(const Batch&, Matrix<float>&);
template double cross_entropy(const Batch&, Matrix<double>&);

}  // namespace train_text
