#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ringlet/optimizers.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tensor.hpp>
#include <ringlet/tree.hpp>
#include <vector>

namespace ringlet::native {

/// What of rows moves.
enum class RowContents : std::uint8_t { parameters, state, both };

/// One shard that this rank holds.
struct HeldPart {
  int shard = -1;  // -1: none
  Tree parameters;
  Tree gradients;  // averaged; they have memory once make_gradients() was called
  std::unique_ptr<Optimizer> optimizer;
  std::vector<Tensor> memory;  // of the parameters, where these are not views of full tensors
  Tensor gradient_memory;
};

/// A tensor whose rows move with those of a parameter: the parameter, or a slot of the optimizer's state.
struct RowTensor {
  std::size_t parameter;       // its position in the outline
  std::vector<TensorView> at;  // by place
};

/// The same tensors in the same order on all ranks.
std::vector<RowTensor> row_tensors(const Tree& outline, std::vector<HeldPart>& parts, RowContents contents);

/// Where `rows` of a tensor begin in memory that begins with the row `first`.
std::size_t offset_in(const Shape& full, RowRange rows, std::int64_t first, std::size_t element);
std::size_t bytes_of(const Shape& full, RowRange rows, std::size_t element);

}  // namespace ringlet::native
