#include "native/elastic/row_transfers.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/base/flat.hpp"

namespace ringlet::native {

namespace {

constexpr std::size_t kRowBlockBytes = 4 << 20;

void copy_within(const RowBytes& rows) {
  if (rows.from->contiguous() && rows.to->contiguous()) {
    const std::byte* from = rows.from->data() + rows.from_offset;
    std::byte* to = rows.to->data() + rows.to_offset;
    if (from != to) std::memcpy(to, from, rows.count);
    return;
  }
  std::vector<std::byte> bytes(std::min(kRowBlockBytes, rows.count));
  for (std::size_t done = 0; done < rows.count; done += kRowBlockBytes) {
    const std::span<std::byte> block(bytes.data(), std::min(kRowBlockBytes, rows.count - done));
    gather(*rows.from, rows.from_offset + done, block);
    scatter(block, *rows.to, rows.to_offset + done);
  }
}

}  // namespace

void RowTransfers::start(Group& group, const CallOptions& call, const std::vector<RowBytes>& moves) {
  for (const RowBytes& rows : moves) {
    if (rows.peer < 0) continue;
    const bool sends = rows.from != nullptr;
    const TensorView& tensor = sends ? *rows.from : *rows.to;
    for (std::size_t done = 0; done < rows.count; done += kRowBlockBytes) {
      const std::size_t offset = (sends ? rows.from_offset : rows.to_offset) + done;
      Block block{std::nullopt, offset, {}, {}};
      TensorView view(tensor.data() + offset, DType::u8, std::min(kRowBlockBytes, rows.count - done));
      if (!tensor.contiguous()) {
        block.bytes.resize(view.bytes());
        view = TensorView(block.bytes.data(), DType::u8, block.bytes.size());
        if (sends)
          gather(tensor, offset, block.bytes);
        else
          block.to = tensor;
      }
      block.work = sends ? group.send_async(view, rows.peer, call) : group.recv_async(view, rows.peer, call);
      blocks_.push_back(std::move(block));
    }
  }
  for (const RowBytes& rows : moves)
    if (rows.peer < 0) copy_within(rows);
}

void RowTransfers::wait() {
  for (Block& block : blocks_) {
    block.work.wait();
    if (block.to) scatter(block.bytes, *block.to, block.offset);
  }
  blocks_.clear();
}

}  // namespace ringlet::native
