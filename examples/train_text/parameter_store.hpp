#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "adamw.hpp"
#include "random.hpp"

namespace train_text {

/// All parameters in one array and all gradients in another, so that either can be moved, hashed or updated as a whole. The layers take
/// their parts in the order of the forward pass and keep the offsets.
template <class T>
class ParameterStore {
 public:
  explicit ParameterStore(std::uint64_t seed) : seed_(seed) {}

  /// Adds a tensor of normally distributed values; returns its offset.
  std::size_t add_normal(std::size_t count, double deviation, bool decays) {
    const std::size_t first = add(count, T(0), decays);
    for (std::size_t i = 0; i < count; ++i) values_[first + i] = static_cast<T>(deviation * normal_at(seed_, first, i));
    return first;
  }
  /// Adds a tensor of equal values, which does not decay; returns its offset.
  std::size_t add_constant(std::size_t count, T value) { return add(count, value, false); }

  std::size_t count() const { return values_.size(); }
  std::span<T> values() { return values_; }
  std::span<T> gradients() { return gradients_; }
  T* value(std::size_t offset) { return values_.data() + offset; }
  T* gradient(std::size_t offset) { return gradients_.data() + offset; }
  const std::vector<ParameterRange>& ranges() const { return ranges_; }

 private:
  std::size_t add(std::size_t count, T value, bool decays) {
    const std::size_t first = values_.size();
    values_.resize(first + count, value);
    gradients_.resize(first + count);
    ranges_.push_back({first, count, decays});
    return first;
  }

  std::uint64_t seed_;
  std::vector<T> values_;
  std::vector<T> gradients_;
  std::vector<ParameterRange> ranges_;
};

}  // namespace train_text
