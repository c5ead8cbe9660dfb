#pragma once

#include <string>
#include <vector>

#include "native/checkpoint/group_tensor.hpp"

namespace ringlet::native {

/// Rows of a tensor and their place in a rank's file.
struct PlacedPiece {
  std::size_t tensor = 0;  // its position in the checkpoint
  RowRange rows;
  std::uint64_t offset = 0;  // from where the header ends
  std::uint64_t length = 0;
};

/// The pieces that rank `rank` writes, in the order of its file: the tensors with the largest elements first, so that all are aligned.
/// Pieces without elements are left out. Every rank computes the same.
std::vector<PlacedPiece> place_pieces(const std::vector<GroupTensor>& tensors, int rank, int ranks);

/// The beginning of a safetensors file: the header's length and the header, padded to 8 bytes. Throws `InvalidArgument` where it is longer
/// than the format allows.
std::string safetensors_header(const std::vector<GroupTensor>& tensors, const std::vector<PlacedPiece>& pieces, std::uint64_t step);

}  // namespace ringlet::native
