#pragma once

#include <vector>

#include "native/checkpoint/exchange.hpp"
#include "native/checkpoint/find.hpp"
#include "native/checkpoint/group_tensor.hpp"

namespace ringlet::native {

/// Bytes of a file that one rank reads and one rank needs, at most kBlockBytes.
struct Transfer {
  std::size_t tensor = 0;  // its position in the checkpoint
  int file = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t tensor_offset = 0;  // in the target's rows, as one row of bytes
  std::size_t bytes = 0;
  int source = 0;  // the rank that reads; equal to `target` where a rank reads for itself
  int target = 0;
};

/// The transfers that rank `rank` of `ranks` takes part in. They are in an order that is the same on all ranks. `placed` has the manifest's
/// entry for each tensor. A pure function of what all ranks know.
std::vector<Transfer> plan_transfers(const std::vector<GroupTensor>& tensors, const std::vector<const Manifest::Tensor*>& placed,
                                     const std::vector<std::vector<int>>& seen_by, int rank, int ranks);

/// Reads, sends and receives. Collective. Where a file cannot be read, every rank throws an `IoError` once all transfers are over; the
/// tensors' contents are then unspecified.
void move(const Exchange& exchange, const std::vector<Transfer>& transfers, const std::vector<GroupTensor>& tensors, const Found& found);

}  // namespace ringlet::native
