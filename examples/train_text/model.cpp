#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attention.hpp"
#include "input_error.hpp"
#include "layers.hpp"

namespace train_text {
namespace {

// The deviation is small, so that an untrained model is unsure rather than wrong.
constexpr double kHeadDeviation = 0.02;

double deviation_for(int inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); }

// The outputs of all branches add up in the residual stream, so each starts smaller the more branches there are.
double branch_deviation(int inputs, int layers) { return deviation_for(inputs) / std::sqrt(2.0 * layers); }

// x += projection(attention(norm(x)))
template <class T>
struct AttentionBranch {
  AttentionBranch(Module<T>& module, const std::string& name, const ModelShape& shape)
      : norm(module, name + ".norm", shape.width),
        to_qkv(module, name + ".qkv", shape.width, 3 * shape.width, deviation_for(shape.width)),
        attention(shape.heads),
        projection(module, name + ".projection", shape.width, shape.width, branch_deviation(shape.width, shape.layers)) {}

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
  MlpBranch(Module<T>& module, const std::string& name, const ModelShape& shape)
      : norm(module, name + ".norm", shape.width),
        expand(module, name + ".expand", shape.width, 4 * shape.width, deviation_for(shape.width)),
        contract(module, name + ".contract", 4 * shape.width, shape.width, branch_deviation(4 * shape.width, shape.layers)) {}

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

std::string problem_of(const ModelShape& shape) {
  constexpr double kMaxParameters = 1U << 29;
  const std::pair<const char*, int> numbers[] = {
      {"--layers", shape.layers}, {"--width", shape.width}, {"--heads", shape.heads}, {"--context", shape.context}};
  for (const auto& [option, value] : numbers) {
    if (value < 1) return std::string(option) + " must be at least 1, not " + std::to_string(value);
    if (value > kMaxSize) return std::string(option) + " must be at most " + std::to_string(kMaxSize) + ", not " + std::to_string(value);
  }
  if (shape.width % shape.heads != 0) {
    return "--width " + std::to_string(shape.width) + " cannot be shared by --heads " + std::to_string(shape.heads) +
           ": choose a width that is a multiple of the heads";
  }
  const double width = shape.width;
  if (width * (shape.layers * (12 * width + 13) + shape.context + 2 * kByteValues) > kMaxParameters)
    return "--layers " + std::to_string(shape.layers) + " of --width " + std::to_string(shape.width) +
           " make more parameters than this program can number: choose a smaller model";
  return {};
}

template <class T>
struct Transformer<T>::Layers {
  struct Block {
    Block(Module<T>& its_module, const ModelShape& shape)
        : module(its_module), attention(module, "attention", shape), mlp_begin(module.tensors().size()), mlp(module, "mlp", shape) {}

    Module<T>& module;
    AttentionBranch<T> attention;
    std::size_t mlp_begin;  // index of the first tensor of the MLP
    MlpBranch<T> mlp;
  };

  Layers(const ModelShape& shape, std::uint64_t chosen_seed)
      : seed(chosen_seed), embedding(add_module("embedding"), shape.context, shape.width) {
    for (int i = 0; i < shape.layers; ++i) blocks.emplace_back(add_module("blocks." + std::to_string(i)), shape);
    Module<T>& last = add_module("head");
    norm.emplace(last, "norm", shape.width);
    output.emplace(last, "output", shape.width, kByteValues, kHeadDeviation);
  }

  // A module is added only after the previous one has all its tensors.
  Module<T>& add_module(std::string name) {
    std::size_t first = 0;
    for (const Module<T>& module : modules) first += module.count();
    return modules.emplace_back(std::move(name), seed, first);
  }

  void logits_of(const Batch& batch, ModuleMemory<T>& memory) {
    std::size_t module = 0;
    memory.begin_forward(module++);
    embedding.forward(batch, x);
    for (Block& block : blocks) {
      memory.begin_forward(module++);
      block.attention.forward(batch.length, x);
      block.mlp.forward(x);
    }
    memory.begin_forward(module);
    norm->forward(x, normed);
    output->forward(normed, logits);
  }

  void backward_of_block(Block& block, int length, ModuleMemory<T>& memory) {
    block.mlp.backward(gradient);
    memory.gradients_ready(block.module.gradients(block.mlp_begin, block.module.tensors().size()));
    block.attention.backward(length, gradient);
    memory.gradients_ready(block.module.gradients(0, block.mlp_begin));
  }

  std::uint64_t seed;
  std::deque<Module<T>> modules;  // a deque does not move its elements when it grows
  Embedding<T> embedding;
  std::deque<Block> blocks;
  std::optional<LayerNorm<T>> norm;
  std::optional<Linear<T>> output;
  Matrix<T> x, normed, logits, gradient;
};

template <class T>
Transformer<T>::Transformer(const ModelShape& shape, std::uint64_t seed) : shape_(shape) {
  if (const std::string problem = problem_of(shape); !problem.empty()) throw InputError(problem);
  layers_ = std::make_unique<Layers>(shape, seed);
}

template <class T>
Transformer<T>::~Transformer() = default;

template <class T>
std::deque<Module<T>>& Transformer<T>::modules() {
  return layers_->modules;
}

template <class T>
std::size_t Transformer<T>::parameter_count() const {
  std::size_t count = 0;
  for (const Module<T>& module : layers_->modules) count += module.count();
  return count;
}

template <class T>
std::vector<GradientPart> Transformer<T>::gradient_parts() const {
  std::vector<GradientPart> parts;
  std::size_t end = parameter_count();
  const auto add = [&](std::string name, std::size_t count) {
    end -= count;
    parts.push_back({std::move(name), end, count});
  };
  const auto& modules = layers_->modules;
  add(modules.back().name(), modules.back().count());
  for (auto block = layers_->blocks.rbegin(); block != layers_->blocks.rend(); ++block) {
    const std::size_t mlp_first = block->module.tensors()[block->mlp_begin].first;
    add(block->module.name() + ".mlp", block->module.count() - mlp_first);
    add(block->module.name() + ".attention", mlp_first);
  }
  add(modules.front().name(), modules.front().count());
  return parts;
}

template <class T>
double Transformer<T>::forward(const Batch& batch, ModuleMemory<T>& memory) {
  layers_->logits_of(batch, memory);
  return cross_entropy(batch, layers_->logits);
}

template <class T>
void Transformer<T>::backward(const Batch& batch, ModuleMemory<T>& memory, double scale) {
  Layers& all = *layers_;
  const auto all_gradients = [&](std::size_t module) { return all.modules[module].gradients(0, all.modules[module].tensors().size()); };
  std::size_t module = all.modules.size() - 1;
  memory.begin_backward(module);
  all.logits *= static_cast<T>(scale);
  all.output->backward(all.normed, all.logits, all.x);
  all.gradient.setZero(all.x.rows(), all.x.cols());
  all.norm->backward_add(all.x, all.gradient);
  memory.gradients_ready(all_gradients(module));
  memory.end_backward(module);
  for (auto block = all.blocks.rbegin(); block != all.blocks.rend(); ++block) {
    memory.begin_backward(--module);
    all.backward_of_block(*block, batch.length, memory);
    memory.end_backward(module);
  }
  memory.begin_backward(--module);
  all.embedding.backward(batch, all.gradient);
  memory.gradients_ready(all_gradients(module));
  memory.end_backward(module);
}

template <class T>
std::vector<T> Transformer<T>::next_byte_logits(std::span<const std::uint8_t> text, ModuleMemory<T>& memory) {
  const auto seen = text.last(std::min(text.size(), static_cast<std::size_t>(shape_.context)));
  Batch batch{.sequences = 1, .length = static_cast<int>(seen.size()), .rows = {seen.begin(), seen.end()}};
  layers_->logits_of(batch, memory);
  const auto last = layers_->logits.row(batch.length - 1);
  return {last.begin(), last.end()};
}

template class Transformer<float>;
template class Transformer<double>;

}  // namespace train_text
