#include "native/checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringlet::native {

namespace {

constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the format's limit

std::string_view safetensors_name(DType dtype) { return ringlet::detail::kDTypes[static_cast<std::size_t>(dtype)].safetensors_name; }

/// The dtype by which the file's readers know the elements: pairs of f64 for complex128, which the format lacks.
DType dtype_in_file(DType dtype) { return safetensors_name(dtype).empty() ? part_dtype(dtype) : dtype; }

/// The shape of these rows of the tensor in the file. A scalar keeps its shape.
std::vector<std::int64_t> piece_shape(const GroupTensor& tensor, RowRange rows) {
  const auto full = tensor.entry->full_shape.extents();
  std::vector<std::int64_t> shape(full.begin(), full.end());
  if (!shape.empty()) shape[0] = rows.count();
  const DType dtype = tensor.entry->values.dtype();
  if (dtype_in_file(dtype) != dtype) shape.push_back(2);
  return shape;
}

}  // namespace

std::vector<PlacedPiece> place_pieces(const std::vector<GroupTensor>& tensors, int rank, int ranks) {
  std::vector<PlacedPiece> pieces;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const RowRange rows = tensors[t].written_by(rank, ranks);
    const std::uint64_t length = static_cast<std::uint64_t>(rows.count()) * tensors[t].row_bytes;
    if (length > 0) pieces.push_back({t, rows, 0, length});
  }
  const auto element_bytes = [&](const PlacedPiece& piece) { return size_of(tensors[piece.tensor].entry->values.dtype()); };
  std::stable_sort(pieces.begin(), pieces.end(),
                   [&](const PlacedPiece& a, const PlacedPiece& b) { return element_bytes(a) > element_bytes(b); });
  std::uint64_t offset = 0;
  for (PlacedPiece& piece : pieces) {
    piece.offset = offset;
    offset += piece.length;
  }
  return pieces;
}

std::string safetensors_header(const std::vector<GroupTensor>& tensors, const std::vector<PlacedPiece>& pieces, std::uint64_t step) {
  nlohmann::json header;
  header["__metadata__"] = {{"format", "ringlet"}, {"step", std::to_string(step)}};
  for (const PlacedPiece& piece : pieces) {
    const GroupTensor& tensor = tensors[piece.tensor];
    header[tensor.entry->name] = {{"dtype", safetensors_name(dtype_in_file(tensor.entry->values.dtype()))},
                                  {"shape", piece_shape(tensor, piece.rows)},
                                  {"data_offsets", {piece.offset, piece.offset + piece.length}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeaderBytes)
    throw InvalidArgument(
        {Errc::invalid_argument,
         fmt::format("{} tensors make a header of {} bytes; a safetensors file allows {}; use more ranks or fewer tensors", pieces.size(),
                     text.size(), kMaxHeaderBytes)});
  std::string length;
  for (std::size_t byte = 0; byte < 8; ++byte) length.push_back(static_cast<char>(text.size() >> (8 * byte) & 0xff));
  return length + text;
}

}  // namespace ringlet::native
