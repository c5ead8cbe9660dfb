#pragma once

#include <deque>
#include <ringlet/tensor.hpp>
#include <span>
#include <vector>

#include "module.hpp"

namespace train_text {

/// Holds all parameters in one array and all gradients in another, and lends them to the modules permanently. Modules are stored in their
/// order, and so are the tensors of a module, without gaps. The modules must not be used after this object is destroyed.
template <class T>
class FlatParameters {
 public:
  /// Fills in the modules' initial values.
  explicit FlatParameters(std::deque<Module<T>>& modules) {
    std::size_t count = 0;
    for (const Module<T>& module : modules) count += module.count();
    const ringlet::Shape shape{static_cast<std::int64_t>(count)};
    values_memory_ = ringlet::Tensor(ringlet::dtype_of<T>, shape);
    gradients_memory_ = ringlet::Tensor(ringlet::dtype_of<T>, shape);
    std::size_t first = 0;
    for (Module<T>& module : modules) {
      module.initialise(values().subspan(first, module.count()));
      std::vector<const T*> tensors;
      for (const ParameterTensor& tensor : module.tensors()) tensors.push_back(values().data() + first + tensor.first);
      module.lend_values(std::move(tensors));
      module.lend_gradients(gradients().subspan(first, module.count()));
      first += module.count();
    }
  }
  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  std::span<T> values() { return values_memory_.values<T>(); }
  std::span<T> gradients() { return gradients_memory_.values<T>(); }

 private:
  // These are aligned because alignment decides which elements Eigen computes with fused multiply-add, and so decides the last bits.
  ringlet::Tensor values_memory_;
  ringlet::Tensor gradients_memory_;
};

}  // namespace train_text
