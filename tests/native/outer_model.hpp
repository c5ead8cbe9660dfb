#pragma once

#include <cstring>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/outer_reference.hpp"

namespace ringlet::test {

/// A rank's parameters: leaves of several sizes.
struct OuterModel {
  OuterModel() {
    for (const std::int64_t count : {70, 1, 33, 128, 5, 40}) {
      memory.emplace_back(DType::f32, Shape{count});
      for (float& value : memory.back().values<float>()) value = 0.5F;
      tree.add("leaf" + std::to_string(memory.size()), memory.back());
      elements += static_cast<std::size_t>(count);
    }
  }
  double step(int rank, std::uint64_t number) {
    std::size_t element = 0;
    for (Tensor& tensor : memory)
      for (float& value : tensor.values<float>()) value = static_cast<float>(moved(value, rank, number, element++));
    return samples_of(rank, number);
  }

  std::vector<Tensor> memory;
  Tree tree;
  std::size_t elements = 0;
};

inline std::vector<float> outer_bits(const Tree& tree) {
  std::vector<float> all;
  for (const Leaf& leaf : tree) {
    const auto* values = reinterpret_cast<const float*>(leaf.values.data());
    all.insert(all.end(), values, values + leaf.values.count());
  }
  return all;
}

inline void expect_equal_bits(const OuterTrainer& trainer, const Tree& own) {
  Group group = trainer.world();
  const std::vector<float> mine = outer_bits(own);
  expect(mine == outer_bits(trainer.shared_parameters()), "the last average has all fragments");
  std::vector<std::uint32_t> least(mine.size());
  std::memcpy(least.data(), mine.data(), 4 * mine.size());
  std::vector<std::uint32_t> most = least;
  group.all_min(least);
  group.all_max(most);
  expect(least == most, "the same bits on all ranks");
}

}  // namespace ringlet::test
