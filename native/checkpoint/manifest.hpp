#pragma once

#include <ringlet/checkpoint.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::native {

/// Ends the errors of those that are damaged.
inline constexpr std::string_view kDamaged =
    "the checkpoint is damaged; to go on from an older one, move its folder away, or name the older one's step";

/// Everything about a checkpoint except the tensors' bytes. The same text is in every directory that the checkpoint was saved into.
struct Manifest {
  /// Rows of a tensor: the bytes [offset, offset + length) of a file.
  struct Piece {
    int file = 0;
    RowRange rows;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::vector<Piece> pieces;  // all rows, each once, in order
    /// How many ranks' addends these are, a piece each, one after the other; 0 for other tensors.
    std::uint64_t addends = 0;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  /// The file of one rank that saved. Its name follows from the rank's number.
  struct File {
    std::uint64_t size = 0;
    std::string checksum;
    friend bool operator==(const File&, const File&) = default;
  };

  std::string id;  // of this save: 16 hexadecimal digits
  std::uint64_t step = 0;
  std::vector<std::vector<int>> directories;  // the ranks whose files were saved into one and the same directory
  std::map<std::string, CheckpointValue, std::less<>> values;
  std::vector<File> files;  // one per rank that saved
  std::vector<Tensor> tensors;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr std::uint64_t kMaxManifestBytes = 256u << 20;

/// The manifest as JSON, which begins with the checksum of all bytes after it.
std::string to_text(const Manifest& manifest);
/// Throws `IoError` that says what is wrong: altered bytes, another version, anything that does not fit together. The result is consistent:
/// every piece is inside its file, and every row is there once.
Manifest parse_manifest(std::string_view text);

/// The name of a rank's file, such as "rank-00001-of-00004.safetensors".
std::string file_name(std::size_t rank, std::size_t ranks);

}  // namespace ringlet::native
