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

/// The largest number in a ModelShape. Counts of parameters below it cannot overflow.
constexpr int kMaxSize = 1 << 16;

struct ModelShape {
  int layers = 2;
  int width = 96;
  int heads = 4;
  int context = 64;
};

/// Returns an empty string if a model can have this shape, else one sentence that says which number does not fit and which would.
std::string problem_of(const ModelShape& shape);

/// A group of gradients that are complete at the same time. `first` is the index of its first element in the concatenated gradients of all
/// modules.
struct GradientPart {
  std::string name;  // the module's name, or the name of a part of it
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Gives a model's modules their memory when they need it. Memory lent to a module may be taken away once another module begins. The
/// methods here do nothing, which suffices if the modules have their memory all the time.
template <class T>
class ModuleMemory {
 public:
  virtual ~ModuleMemory() = default;
  /// Module number `module` is about to run and needs its values. In the backward pass it needs memory for its gradients too.
  virtual void begin_forward(std::size_t /*module*/) {}
  virtual void begin_backward(std::size_t /*module*/) {}
  /// These gradients of the running module are complete and can be sent while the rest is computed. Every gradient is reported once per
  /// pass, those near the output first, always in the same order.
  virtual void gradients_ready(std::span<T> /*gradients*/) {}
  /// All gradients of the module are complete. Modules end in the reverse order of the forward pass.
  virtual void end_backward(std::size_t /*module*/) {}
};

/// A language model over bytes: embedding, pre-norm transformer blocks (causal attention, then an MLP with GELU), layer norm and output
/// projection. Its modules are the embedding, each block, and the head, which is the last norm and the projection. T is float; the tests
/// also use double. Only one thread at a time may use it.
template <class T>
class Transformer {
 public:
  /// Plans the modules, which have no memory yet. `seed` determines their initial values. Throws `InputError` if the shape is not possible.
  Transformer(const ModelShape& shape, std::uint64_t seed);
  ~Transformer();
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  /// The modules in the order of the forward pass.
  std::deque<Module<T>>& modules();
  /// The number of parameters in all modules.
  std::size_t parameter_count() const;
  /// The parts that a backward pass reports as ready, in the order of the reports.
  std::vector<GradientPart> gradient_parts() const;

  /// Returns the mean cross-entropy over the batch in nats per byte. The batch needs at least one sequence, none longer than the context.
  double forward(const Batch& batch, ModuleMemory<T>& memory);
  /// Writes the gradients of the last forward pass' loss, times `scale`, into the modules' memory. Overwrites the values that forward kept.
  void backward(const Batch& batch, ModuleMemory<T>& memory, double scale = 1);

  /// Returns the unnormalised log-probabilities of the next byte after `text`, of which the last `context` bytes count. `text` must not be
  /// empty.
  std::vector<T> next_byte_logits(std::span<const std::uint8_t> text, ModuleMemory<T>& memory);

 private:
  struct Layers;
  ModelShape shape_;
  std::unique_ptr<Layers> layers_;
};

}  // namespace train_text
