#include "model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "attention.hpp"
#include "input_error.hpp"
#include "layers.hpp"

namespace train_text {
namespace {

constexpr int kByteValues = 256;
// Small: an untrained model should be unsure, not wrong.
constexpr double kHeadDeviation = 0.02;

double deviation_for(int inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); }

// Many branches add up in the residual stream: each starts smaller the more there are.
double branch_deviation(int inputs, int layers) { return deviation_for(inputs) / std::sqrt(2.0 * layers); }

// x += projection(attention(norm(x)))
template <class T>
struct AttentionBranch {
  AttentionBranch(ParameterStore<T>& store, const std::string& name, const ModelShape& shape)
      : norm(store, name + ".norm", shape.width),
        to_qkv(store, name + ".qkv", shape.width, 3 * shape.width, deviation_for(shape.width)),
        attention(shape.heads),
        projection(store, name + ".projection", shape.width, shape.width, branch_deviation(shape.width, shape.layers)) {}

  void forward(int length, Matrix<T>& x) {
    norm.forward(x, normed);
    to_qkv.forward(normed, qkv);
    attention.forward(qkv, length, attended);
    projection.forward(attended, change);
    x += change;
  }
  void backward(int length, Matrix<T>& gradient) {
    projection.backward(attended, gradient, change);
    attention.backward(qkv, length, change, qkv_gradient);
    to_qkv.backward(normed, qkv_gradient, change);
    norm.backward_add(change, gradient);
  }

  LayerNorm<T> norm;
  Linear<T> to_qkv;
  CausalAttention<T> attention;
  Linear<T> projection;
  Matrix<T> normed, qkv, attended, change, qkv_gradient;
};

// x += contract(gelu(expand(norm(x))))
template <class T>
struct MlpBranch {
  MlpBranch(ParameterStore<T>& store, const std::string& name, const ModelShape& shape)
      : norm(store, name + ".norm", shape.width),
        expand(store, name + ".expand", shape.width, 4 * shape.width, deviation_for(shape.width)),
        contract(store, name + ".contract", 4 * shape.width, shape.width, branch_deviation(4 * shape.width, shape.layers)) {}

  void forward(Matrix<T>& x) {
    norm.forward(x, normed);
    expand.forward(normed, expanded);
    gelu.forward(expanded, activated);
    contract.forward(activated, change);
    x += change;
  }
  void backward(Matrix<T>& gradient) {
    contract.backward(activated, gradient, expanded_gradient);
    gelu.backward(expanded, expanded_gradient);
    expand.backward(normed, expanded_gradient, change);
    norm.backward_add(change, gradient);
  }

  LayerNorm<T> norm;
  Linear<T> expand;
  Gelu<T> gelu;
  Linear<T> contract;
  Matrix<T> normed, expanded, activated, change, expanded_gradient;
};

}  // namespace

void check_shape(const ModelShape& shape) {
  const auto at_least_one = [](const char* option, int value) {
    if (value < 1) throw InputError(fmt::format("{} must be at least 1, not {}", option, value));
  };
  at_least_one("--layers", shape.layers);
  at_least_one("--width", shape.width);
  at_least_one("--heads", shape.heads);
  at_least_one("--context", shape.context);
  if (shape.width % shape.heads != 0) {
    throw InputError(
        fmt::format("--width {} cannot be shared by --heads {}: choose a width that is a multiple of the heads", shape.width, shape.heads));
  }
}

template <class T>
struct Transformer<T>::Layers {
  struct Block {
    Block(ParameterStore<T>& store, const std::string& name, const ModelShape& shape)
        : attention_begin(store.count()),
          attention(store, name + ".attention", shape),
          mlp_begin(store.count()),
          mlp(store, name + ".mlp", shape),
          end(store.count()) {}

    std::size_t attention_begin;
    AttentionBranch<T> attention;
    std::size_t mlp_begin;
    MlpBranch<T> mlp;
    std::size_t end;
  };

  Layers(const ModelShape& shape, std::uint64_t seed) : store(seed), embedding(store, "embedding", shape.context, shape.width) {
    blocks.reserve(static_cast<std::size_t>(shape.layers));
    for (int i = 0; i < shape.layers; ++i) blocks.emplace_back(store, fmt::format("blocks.{}", i), shape);
    head_begin = store.count();
    norm.emplace(store, "norm", shape.width);
    head.emplace(store, "head", shape.width, kByteValues, kHeadDeviation);
  }

  std::span<T> gradients(std::size_t begin, std::size_t end) { return store.gradients().subspan(begin, end - begin); }

  void logits_of(const Batch& batch) {
    embedding.forward(batch, x);
    for (Block& block : blocks) {
      block.attention.forward(batch.length, x);
      block.mlp.forward(x);
    }
    norm->forward(x, normed);
    head->forward(normed, logits);
  }

  ParameterStore<T> store;
  Embedding<T> embedding;
  std::vector<Block> blocks;
  std::size_t head_begin = 0;
  std::optional<LayerNorm<T>> norm;
  std::optional<Linear<T>> head;
  Matrix<T> x, normed, logits, gradient;
};

template <class T>
Transformer<T>::Transformer(const ModelShape& shape, std::uint64_t seed) : shape_(shape) {
  check_shape(shape);
  layers_ = std::make_unique<Layers>(shape, seed);
}

template <class T>
Transformer<T>::~Transformer() = default;

template <class T>
std::span<T> Transformer<T>::parameters() {
  return layers_->store.values();
}

template <class T>
std::span<T> Transformer<T>::gradients() {
  return layers_->store.gradients();
}

template <class T>
const std::vector<ParameterRange>& Transformer<T>::parameter_ranges() const {
  return layers_->store.ranges();
}

template <class T>
double Transformer<T>::forward(const Batch& batch) {
  layers_->logits_of(batch);
  return cross_entropy(batch, layers_->logits);
}

template <class T>
void Transformer<T>::backward(const Batch& batch, const GradientReady& ready) {
  Layers& all = *layers_;
  all.head->backward(all.normed, all.logits, all.x);
  all.gradient.setZero(all.x.rows(), all.x.cols());
  all.norm->backward_add(all.x, all.gradient);
  ready(all.gradients(all.head_begin, all.store.count()));
  for (auto block = all.blocks.rbegin(); block != all.blocks.rend(); ++block) {
    block->mlp.backward(all.gradient);
    ready(all.gradients(block->mlp_begin, block->end));
    block->attention.backward(batch.length, all.gradient);
    ready(all.gradients(block->attention_begin, block->mlp_begin));
  }
  all.embedding.backward(batch, all.gradient);
  ready(all.gradients(0, all.blocks.front().attention_begin));
}

template <class T>
std::vector<T> Transformer<T>::next_byte_logits(std::span<const std::uint8_t> text) {
  const auto seen = text.last(std::min(text.size(), static_cast<std::size_t>(shape_.context)));
  Batch batch{.sequences = 1, .length = static_cast<int>(seen.size()), .rows = {seen.begin(), seen.end()}};
  layers_->logits_of(batch);
  const auto last = layers_->logits.row(batch.length - 1);
  return {last.begin(), last.end()};
}

template class Transformer<float>;
template class Transformer<double>;

}  // namespace train_text
