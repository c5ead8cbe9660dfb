#include "native/outer/fragment.hpp"

#include <span>
#include <utility>

namespace ringlet::native {

namespace {

/// Calls `function(to, from)` with spans of the elements of two packed tensors, which are both f32 or both f64.
template <class Function>
void with_elements(Tensor& to, ConstTensorView from, Function function) {
  const auto apply = [&]<class T>(T) {
    function(to.values<T>(), std::span<const T>(reinterpret_cast<const T*>(from.data()), from.count()));
  };
  if (to.dtype() == DType::f64) return apply(double{});
  apply(float{});
}

}  // namespace

std::vector<LeafRange> cut_fragments(const Tree& parameters, int count) {
  const auto parts = static_cast<std::size_t>(count);
  const std::size_t total = parameters.bytes();
  std::vector<LeafRange> ranges;
  std::size_t next = 0, bytes = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = next;
    const std::size_t last = parameters.size() - (parts - part - 1);  // each of those that follow gets a leaf
    const std::size_t wanted = total / parts * (part + 1);
    while (next < last) {
      const std::size_t size = parameters[next].values.bytes();
      // A leaf goes to the part in which more of it lies.
      const bool fits = bytes + size / 2 < wanted;
      if (next > begin && !fits && part + 1 < parts) break;
      bytes += size;
      ++next;
    }
    ranges.push_back({begin, next});
  }
  return ranges;
}

const Tree& Fragment::take_differences(bool has_samples) {
  memory_.clear();
  differences_ = Tree();
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const TensorView& own = own_[i].values;
    memory_.push_back(has_samples ? Tensor::copy_of(own) : Tensor(own.dtype(), own.shape()));
    if (has_samples)
      with_elements(memory_.back(), shared_[i].values, [](auto values, auto shared) {
        for (std::size_t k = 0; k < values.size(); ++k) values[k] = shared[k] - values[k];
      });
    differences_.add(own_[i].name, memory_.back());
  }
  return differences_;
}

void Fragment::scale_differences(double factor) {
  for (Tensor& values : memory_)
    with_elements(values, values, [&](auto to, auto from) {
      using T = typename decltype(to)::value_type;
      for (std::size_t k = 0; k < to.size(); ++k) to[k] = from[k] * static_cast<T>(factor);
    });
}

void Fragment::adopt(double mixing) {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    if (mixing == 0) {
      copy(shared_[i].values, own_[i].values);
      continue;
    }
    Tensor mixed = Tensor::copy_of(own_[i].values);
    with_elements(mixed, shared_[i].values, [&](auto own, auto shared) {
      using T = typename decltype(own)::value_type;
      for (std::size_t k = 0; k < own.size(); ++k) own[k] = static_cast<T>(mixing) * own[k] + static_cast<T>(1 - mixing) * shared[k];
    });
    copy(mixed, own_[i].values);
  }
}

}  // namespace ringlet::native
