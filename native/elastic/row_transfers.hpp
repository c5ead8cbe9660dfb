#pragma once

#include <cstddef>
#include <optional>
#include <ringlet/group.hpp>
#include <ringlet/tensor.hpp>
#include <vector>

namespace ringlet::native {

/// Bytes that move from one rank to another, or within one.
struct RowBytes {
  const TensorView* from;  // where this rank is the source
  std::size_t from_offset;
  const TensorView* to;  // where this rank is the target
  std::size_t to_offset;
  std::size_t count;
  int peer;  // the other rank; -1: none
};

/// Moves bytes of tensors between ranks in the background. All ranks start the moves between two of them in the same order. What is moved
/// stays as it is until wait() has returned or this object is destroyed, which waits, too.
class RowTransfers {
 public:
  void start(Group& group, const CallOptions& call, const std::vector<RowBytes>& moves);
  void wait();
  /// Ends what is under way, which the failure of its group does.
  void drop() { blocks_.clear(); }

 private:
  struct Block {
    std::optional<TensorView> to;  // where `bytes` are copied to at the end
    std::size_t offset;
    std::vector<std::byte> bytes;
    Work work;  // declared last: its destructor waits
  };

  std::vector<Block> blocks_;
};

}  // namespace ringlet::native
