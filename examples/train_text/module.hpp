#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "random.hpp"

namespace train_text {

/// A parameter tensor of a module. `first` is the index of its first element among all parameters of the module.
struct ParameterTensor {
  std::string name;  // its name within the module; nested names are joined by dots
  std::vector<std::int64_t> shape;
  std::size_t first = 0;
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;
};

/// A part of the model whose parameters are needed together. It describes its tensors but has no memory of its own. Values and gradients
/// are lent to it while they are used, so they need not exist all the time.
template <class T>
class Module {
 public:
  /// The initial values depend on `seed` and on `first`, the number of parameters in all previous modules.
  Module(std::string name, std::uint64_t seed, std::size_t first) : name_(std::move(name)), seed_(seed), first_(first) {}

  /// Adds a tensor with normally distributed initial values. Returns its index, by which the layer that adds it finds it again.
  std::size_t add(std::string name, std::vector<std::int64_t> shape, double mean, double deviation) {
    std::size_t elements = 1;
    for (const std::int64_t extent : shape) elements *= static_cast<std::size_t>(extent);
    tensors_.push_back({std::move(name), std::move(shape), count_, elements, mean, deviation});
    count_ += elements;
    return tensors_.size() - 1;
  }

  const std::string& name() const { return name_; }
  const std::vector<ParameterTensor>& tensors() const { return tensors_; }
  /// The number of parameters in all tensors.
  std::size_t count() const { return count_; }

  /// Writes the initial values of all tensors, one tensor after the other.
  void initialise(std::span<T> values) const {
    for (const ParameterTensor& tensor : tensors_) {
      for (std::size_t i = 0; i < tensor.count; ++i) {
        const double drawn = tensor.deviation == 0 ? 0.0 : normal_at(seed_, first_ + tensor.first, i);
        values[tensor.first + i] = static_cast<T>(tensor.mean + tensor.deviation * drawn);
      }
    }
  }

  /// `values` has one pointer per tensor. An empty vector takes the values away.
  void lend_values(std::vector<const T*> values) { values_ = std::move(values); }
  /// `gradients` has `count()` elements, one tensor after the other. An empty span takes the memory away.
  void lend_gradients(std::span<T> gradients) { gradients_ = gradients; }
  bool has_values() const { return !values_.empty(); }

  // The module's layers use the following. They throw `std::logic_error` while no memory is lent.
  const T* value(std::size_t tensor) const {
    if (values_.empty()) throw std::logic_error("the parameters of module " + name_ + " are used while it has none");
    return values_[tensor];
  }
  T* gradient(std::size_t tensor) const {
    if (gradients_.empty()) throw std::logic_error("the gradients of module " + name_ + " are written while it has no memory for them");
    return gradients_.data() + tensors_[tensor].first;
  }
  /// Returns the gradients of the tensors [begin, end), which are contiguous.
  std::span<T> gradients(std::size_t begin, std::size_t end) const {
    const std::size_t first = tensors_[begin].first;
    return gradients_.subspan(first, (end < tensors_.size() ? tensors_[end].first : count_) - first);
  }

 private:
  std::string name_;
  std::uint64_t seed_;
  std::size_t first_;
  std::vector<ParameterTensor> tensors_;
  std::size_t count_ = 0;
  std::vector<const T*> values_;
  std::span<T> gradients_;
};

}  // namespace train_text
