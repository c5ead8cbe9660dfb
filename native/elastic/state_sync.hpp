#pragma once

#include <cstdint>
#include <ringlet/checkpoint.hpp>
#include <string>
#include <vector>

#include "core/elastic/hand_over.hpp"
#include "native/checkpoint/exchange.hpp"

namespace ringlet::native {

/// What a rank has of the training's state.
struct Standing {
  bool lacks = false;      // it has none: it came later, or its own was being overwritten
  std::uint64_t step = 0;  // how many steps are committed in it
};

/// Finds the ranks whose state is not that of the lowest rank of those with the most steps. Collective. Throws `MismatchError` where the
/// ranks' tensors differ in name, dtype or shape, and `PeerLost` where no rank has a state.
HandOver compare(const Exchange& exchange, const Checkpoint& state, const Standing& mine);

/// Fills the state of those who take, in blocks from all givers in turn. A giver has 8 MiB of copies at most, a taker as much for each
/// giver. Collective. Throws `IoError` on all ranks if a taker's state does not have the checksum afterwards.
void hand_over(const Exchange& exchange, Checkpoint& state, const HandOver& plan);

}  // namespace ringlet::native
