#include "attention.hpp"

#include <cmath>

namespace train_text {
namespace {

// The place of one head of one sequence: its tokens' rows, and the columns of its queries, keys and values.
struct HeadBlock {
  Eigen::Index row;
  Eigen::Index length;
  Eigen::Index query, key, value;
  Eigen::Index width;

  template <class M>
  auto queries(M& qkv) const {
    return qkv.block(row, query, length, width);
  }
  template <class M>
  auto keys(M& qkv) const {
    return qkv.block(row, key, length, width);
  }
  template <class M>
  auto values(M& qkv) const {
    return qkv.block(row, value, length, width);
  }
  template <class M>
  auto outputs(M& output) const {
    return output.block(row, query, length, width);
  }
};

HeadBlock head_block(Eigen::Index sequence, Eigen::Index length, Eigen::Index head, Eigen::Index heads, Eigen::Index qkv_columns) {
  const Eigen::Index features = qkv_columns / 3;
  const Eigen::Index width = features / heads;
  const Eigen::Index column = head * width;
  return {sequence * length, length, column, features + column, 2 * features + column, width};
}

}  // namespace

template <class T>
void CausalAttention<T>::forward(const Matrix<T>& qkv, int length, Matrix<T>& output) {
  const Eigen::Index sequences = qkv.rows() / length;
  weights_.resize(sequences * heads_ * length, length);
  output.resize(qkv.rows(), qkv.cols() / 3);
  for (Eigen::Index i = 0; i < sequences * heads_; ++i) {
    const HeadBlock head = head_block(i / heads_, length, i % heads_, heads_, qkv.cols());
    const T scale = 1 / std::sqrt(static_cast<T>(head.width));
    auto weights = weights_.middleRows(i * length, length);
    weights.noalias() = head.queries(qkv) * head.keys(qkv).transpose();
    for (Eigen::Index token = 0; token < length; ++token) {
      auto seen = weights.row(token).head(token + 1);
      seen = ((seen.array() - seen.maxCoeff()) * scale).exp();
      seen /= seen.sum();
      weights.row(token).tail(length - token - 1).setZero();
    }
    head.outputs(output).noalias() = weights * head.values(qkv);
  }
}

template <class T>
void CausalAttention<T>::backward(const Matrix<T>& qkv, int length, const Matrix<T>& output_gradient, Matrix<T>& qkv_gradient) {
  const Eigen::Index sequences = qkv.rows() / length;
  qkv_gradient.resize(qkv.rows(), qkv.cols());
  weight_gradients_.resize(length, length);
  for (Eigen::Index i = 0; i < sequences * heads_; ++i) {
    const HeadBlock head = head_block(i / heads_, length, i % heads_, heads_, qkv.cols());
    const T scale = 1 / std::sqrt(static_cast<T>(head.width));
    const auto weights = weights_.middleRows(i * length, length);
    head.values(qkv_gradient).noalias() = weights.transpose() * head.outputs(output_gradient);
    weight_gradients_.noalias() = head.outputs(output_gradient) * head.values(qkv).transpose();
    // This is the gradient of the softmax. Masked positions have weight 0, so their gradient is 0 too.
    for (Eigen::Index token = 0; token < length; ++token) {
      const auto weight = weights.row(token);
      auto gradient = weight_gradients_.row(token);
      const T mean = gradient.dot(weight);
      gradient = scale * weight.array() * (gradient.array() - mean);
    }
    head.queries(qkv_gradient).noalias() = weight_gradients_ * head.keys(qkv);
    head.keys(qkv_gradient).noalias() = weight_gradients_.transpose() * head.queries(qkv);
  }
}

template class CausalAttention<float>;
template class CausalAttention<double>;

}  // namespace train_text
