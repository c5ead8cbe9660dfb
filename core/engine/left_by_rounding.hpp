#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "simd/kernels.hpp"

namespace ringlet {

/// Where the rank that rounds a finished part to blocks adds what that leaves out. Each place is for a run of the collective's f32, in f32;
/// what falls between them is dropped.
class LeftByRounding {
 public:
  void clear() { places_.clear(); }
  bool empty() const { return places_.empty(); }
  /// Adds a place for the `count` elements from `first` on, behind those of the places before. Its memory is borrowed.
  void add_place(std::size_t first, std::size_t count, float* left) { places_.push_back({first, count, left}); }

  /// Adds what has been left of the `count` elements from `first` on.
  void add(std::size_t first, std::size_t count, const float* left, const simd::Kernels& kernels) const {
    const auto sum = kernels.reduce(DType::f32, ReduceOp::sum);
    auto place = std::partition_point(places_.begin(), places_.end(), [&](const Place& p) { return p.first + p.count <= first; });
    for (; place != places_.end() && place->first < first + count; ++place) {
      const std::size_t begin = std::max(place->first, first);
      const std::size_t end = std::min(place->first + place->count, first + count);
      auto* const into = reinterpret_cast<std::byte*>(place->left + (begin - place->first));
      sum(into, into, reinterpret_cast<const std::byte*>(left + (begin - first)), end - begin);
    }
  }

 private:
  struct Place {
    std::size_t first;
    std::size_t count;
    float* left;
  };

  std::vector<Place> places_;
};

}  // namespace ringlet
