#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "random.hpp"

namespace train_text {

/// A tensor: elements [first, first + count) of the parameters. `name` has the names of the levels that it belongs to, joined by dots.
struct ParameterRange {
  std::string name;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// All parameters in one array and all gradients in another, so that either can be moved, hashed or updated as a whole. The layers take
/// their parts in the order of the forward pass and keep the offsets.
template <class T>
class ParameterStore {
 public:
  explicit ParameterStore(std::uint64_t seed) : seed_(seed) {}

  /// Adds a tensor of normally distributed values; returns its offset.
  std::size_t add_normal(std::string name, std::size_t count, double deviation) {
    const std::size_t first = add_constant(std::move(name), count, T(0));
    for (std::size_t i = 0; i < count; ++i) values_[first + i] = static_cast<T>(deviation * normal_at(seed_, first, i));
    return first;
  }
  /// Adds a tensor of equal values; returns its offset.
  std::size_t add_constant(std::string name, std::size_t count, T value) {
    const std::size_t first = values_.size();
    values_.resize(first + count, value);
    gradients_.resize(first + count);
    ranges_.push_back({std::move(name), first, count});
    return first;
  }

  std::size_t count() const { return values_.size(); }
  std::span<T> values() { return values_; }
  std::span<T> gradients() { return gradients_; }
  T* value(std::size_t offset) { return values_.data() + offset; }
  T* gradient(std::size_t offset) { return gradients_.data() + offset; }
  const std::vector<ParameterRange>& ranges() const { return ranges_; }

 private:
  std::uint64_t seed_;
  std::vector<T> values_;
  std::vector<T> gradients_;
  std::vector<ParameterRange> ranges_;
};

}  // namespace train_text
