#pragma once

#include <functional>

#include "native/checkpoint/manifest.hpp"
#include "native/checkpoint/safetensors.hpp"

namespace ringlet::native {

/// The size, checksum and header of a rank's file that was written.
struct WrittenFile {
  Manifest::File file;
  std::uint64_t header_bytes = 0;
};

/// Writes this rank's pieces as a new safetensors file, block by block straight from the tensors' memory, and syncs it. `on_block` runs
/// after each block.
WrittenFile write_pieces(const std::filesystem::path& path, const std::vector<GroupTensor>& tensors, const std::vector<PlacedPiece>& pieces,
                         int rank, std::uint64_t step, const std::function<void()>& on_block);

}  // namespace ringlet::native
