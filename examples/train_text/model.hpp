#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batches.hpp"
#include "module.hpp"

namespace train_text {

struct ModelShape {
  int layers = 2;
  int width = 96;
  int heads = 4;
  int context = 64;
};

/// Empty where a model can have this shape; else one sentence that says which number does not fit and what would.
std::string problem_of(const ModelShape& shape);

/// Gradients that are complete at the same time. Their elements stand from `first` on where those of all modules stand one behind the
/// other.
struct GradientPart {
  std::string name;  // the module's, or of a part of it
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Gives a model's modules their memory when they need it. What it lends to a module it may take away once another module begins. The
/// methods as they stand here do nothing: enough where the modules have memory all the time.
template <class T>
class ModuleMemory {
 public:
  virtual ~ModuleMemory() = default;
  /// Module number `module` is about to run and needs its values; in the backward pass, memory for its gradients too.
  virtual void begin_forward(std::size_t /*module*/) {}
  virtual void begin_backward(std::size_t /*module*/) {}
  /// These gradients of the module that runs are complete: they can travel while the rest is computed. Every gradient is reported once per
  /// pass, the output end first, always in the same order.
  virtual void gradients_ready(std::span<T> /*gradients*/) {}
  /// All gradients of the module are complete. Modules end in the opposite order of the forward pass.
  virtual void end_backward(std::size_t /*module*/) {}
};

/// A language model over bytes: embedding, pre-norm transformer blocks (causal attention, then an MLP with GELU), layer norm, output
/// projection. Its modules are the embedding, each block, and the head, which is the last norm and the projection. T is float; the tests
/// also use double. One thread at a time.
template <class T>
class Transformer {
 public:
  /// Plans the modules; they have no memory yet. `seed` chooses their initial values. Throws `InputError` with the
  /// shape's problem, if it has one.
  Transformer(const ModelShape& shape, std::uint64_t seed);
  ~Transformer();
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  /// In the order of the forward pass.
  std::deque<Module<T>>& modules();
  /// Parameters of all modules.
  std::size_t parameter_count() const;
  /// What a backward pass reports as ready, in that order.
  std::vector<GradientPart> gradient_parts() const;

  /// Mean cross-entropy over the batch, in nats per byte. The batch has at least one sequence, none longer than the context.
  double forward(const Batch& batch, ModuleMemory<T>& memory);
  /// Writes `scale` times the gradients of the last forward pass' loss into the modules' memory. Destroys what forward left.
  void backward(const Batch& batch, ModuleMemory<T>& memory, double scale = 1);

  /// The unnormalised log-probabilities of the byte after `text`, whose last `context` bytes count. `text` is not empty.
  std::vector<T> next_byte_logits(std::span<const std::uint8_t> text, ModuleMemory<T>& memory);

 private:
  struct Layers;
  ModelShape shape_;
  std::unique_ptr<Layers> layers_;
};

}  // namespace train_text
