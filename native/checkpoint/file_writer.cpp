#include "native/checkpoint/file_writer.hpp"

#include <algorithm>

#include "core/base/checksum.hpp"
#include "core/base/flat.hpp"
#include "native/checkpoint/file.hpp"

namespace ringlet::native {

namespace {

/// A file whose checksum is computed as it is written.
class SummedFile {
 public:
  explicit SummedFile(const std::filesystem::path& path) : file_(File::create(path)) {}

  void write(std::span<const std::byte> bytes) {
    checksum_.update(bytes);
    file_.write(bytes);
    size_ += bytes.size();
  }
  Manifest::File finish() {
    file_.finish();
    return {size_, checksum_.hex()};
  }

 private:
  File file_;
  Checksum checksum_;
  std::uint64_t size_ = 0;
};

}  // namespace

WrittenFile write_pieces(const std::filesystem::path& path, const std::vector<GroupTensor>& tensors, const std::vector<PlacedPiece>& pieces,
                         int rank, std::uint64_t step, const std::function<void()>& on_block) {
  SummedFile file(path);
  const std::string header = safetensors_header(tensors, pieces, step);
  file.write(std::as_bytes(std::span(header)));
  std::vector<std::byte> packed;
  for (const PlacedPiece& piece : pieces) {
    const GroupTensor& tensor = tensors[piece.tensor];
    const ConstTensorView values = tensor.entry->values;
    const std::size_t first = static_cast<std::size_t>(piece.rows.begin - tensor.held_by(rank).begin) * tensor.row_bytes;
    for (std::size_t done = 0; done < piece.length; done += kBlockBytes) {
      const std::size_t bytes = std::min<std::size_t>(kBlockBytes, piece.length - done);
      if (values.contiguous()) {
        file.write({values.data() + first + done, bytes});
      } else {
        packed.resize(bytes);
        gather(values, first + done, packed);
        file.write(packed);
      }
      on_block();
    }
  }
  return {file.finish(), header.size()};
}

}  // namespace ringlet::native
