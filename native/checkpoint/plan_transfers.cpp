#include <algorithm>
#include <tuple>

#include "native/checkpoint/file.hpp"
#include "native/checkpoint/transfer.hpp"

namespace ringlet::native {

namespace {

RowRange overlap(RowRange a, RowRange b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// The order of transfers: one of each file in every round, so that the readers of all files send at the same time.
struct Turn {
  std::size_t round;
  int file;
};

}  // namespace

std::vector<Transfer> plan_transfers(const std::vector<GroupTensor>& tensors, const std::vector<const Manifest::Tensor*>& placed,
                                     const std::vector<std::vector<int>>& seen_by, int rank, int ranks) {
  std::vector<std::pair<Turn, Transfer>> mine;
  std::vector<std::size_t> rounds(seen_by.size());
  const auto add_blocks = [&](Transfer whole, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes; done += kBlockBytes) {
      const Turn turn{rounds[static_cast<std::size_t>(whole.file)]++, whole.file};
      if (whole.source != rank && whole.target != rank) continue;
      Transfer block = whole;
      block.file_offset += done;
      block.tensor_offset += done;
      block.bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, bytes - done));
      mine.emplace_back(turn, block);
    }
  };
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::uint64_t row_bytes = tensors[t].row_bytes;
    for (const Manifest::Piece& piece : placed[t]->pieces) {
      const auto& seers = seen_by[static_cast<std::size_t>(piece.file)];
      for (int target = 0; target < ranks; ++target) {
        const RowRange held = tensors[t].held_by(target);
        const RowRange rows = overlap(piece.rows, held);
        if (rows.count() <= 0) continue;
        const bool sees = std::binary_search(seers.begin(), seers.end(), target);
        add_blocks({t, piece.file, piece.offset + static_cast<std::uint64_t>(rows.begin - piece.rows.begin) * row_bytes,
                    static_cast<std::uint64_t>(rows.begin - held.begin) * row_bytes, 0, sees ? target : seers.front(), target},
                   static_cast<std::uint64_t>(rows.count()) * row_bytes);
      }
    }
  }
  std::stable_sort(mine.begin(), mine.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.round, a.first.file) < std::tie(b.first.round, b.first.file);
  });
  std::vector<Transfer> transfers;
  for (auto& [turn, transfer] : mine) transfers.push_back(transfer);
  return transfers;
}

}  // namespace ringlet::native
