#pragma once

#include <vector>

#include "native/checkpoint/exchange.hpp"
#include "native/checkpoint/find.hpp"
#include "native/checkpoint/group_tensor.hpp"

namespace ringlet::native {

/// Bytes of a file that one rank reads and one needs, at most kBlockBytes.
struct Transfer {
  std::size_t tensor = 0;  // its position in the checkpoint
  int file = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t tensor_offset = 0;  // in what the target holds, as one row of bytes
  std::size_t bytes = 0;
  int source = 0;  // reads; equal to `target` where a rank reads what it needs itself
  int target = 0;
};

/// The transfers that rank `rank` of `ranks` takes part in, in the one order in which all ranks work on theirs. `placed`: per tensor, its
/// pieces. A pure function of what all ranks know.
std::vector<Transfer> plan_transfers(const std::vector<GroupTensor>& tensors, const std::vector<const Manifest::Tensor*>& placed,
                                     const std::vector<std::vector<int>>& seen_by, int rank, int ranks);

/// Reads, sends and receives. Collective. A file that cannot be read is an `IoError` on every rank, once all transfers are over; the
/// tensors' contents are then unspecified.
void move(const Exchange& exchange, const std::vector<Transfer>& transfers, const std::vector<GroupTensor>& tensors, const Found& found);

}  // namespace ringlet::native
