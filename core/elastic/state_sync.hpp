#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <ringlet/tree.hpp>
#include <string>
#include <vector>

#include "core/base/checksum.hpp"
#include "core/elastic/hand_over.hpp"
#include "core/engine/procedure.hpp"
#include "core/gradients/tree_agreement.hpp"

namespace ringlet {

/// Makes the states of all ranks of a world equal: those whose state is not that of the lowest rank of those with the most steps get it, in
/// blocks from all who have it in turn. A giver has 8 MiB of copies at most, a taker as much for each giver. Guests never give, so no
/// native rank has to believe one.
///
/// Every rank ends with the same `mismatch` where tensors differ in name, dtype or shape, with `peer_lost` where no rank has a state, and
/// with `io_error` where a native rank's state does not have the checksum afterwards; for a guest's it is that guest's alone.
class StateSync final : public Procedure {
 public:
  /// `values` is a text of what belongs to the state beside the tensors: compared, and handed over. The checksum of `mine` is computed, not
  /// read. `group`, of all ranks of its world, its `agreements`, and the tensors' memory outlive this object.
  StateSync(const GroupEngine& group, Agreements& agreements, const Tree& state, std::string values, const Standing& mine);
  Action next() override;

  const HandOver& plan() const { return plan_; }
  /// Whether this rank's state is overwritten. Where the procedure has failed, it lacks a state then.
  bool takes() const { return plan_.takes(rank()); }
  const std::string& values() const { return values_; }

 private:
  enum class Stage : std::uint8_t { trees, standings, giving, taking, values_length, values_text, outcomes, end };

  /// What a rank tells: whether it lacks a state, its steps, its checksum.
  using Told = std::array<std::uint64_t, 4>;

  struct Piece {
    TensorView values;
    std::size_t offset, length;
  };
  /// Pieces of tensors that follow each other.
  struct Block {
    std::vector<Piece> pieces;
    std::size_t bytes = 0;
  };
  /// A block that is on its way, and how many messages still use its memory.
  struct Moving {
    std::size_t block;
    std::vector<std::byte> memory;
    std::size_t messages;
    TensorView view() { return {memory.data(), DType::u8, memory.size()}; }
  };

  int rank() const;
  void cut_blocks();
  Checksum::Value checksum() const;
  void read(Moving& moving) const;
  void write(const Moving& moving) const;
  Action tell_standing();
  Action begin_moving();
  Action give();
  Action take();
  Action wait_for_oldest();
  Action tell_length();
  Action tell_values();
  Action tell_outcome();
  Action judge() const;

  const GroupEngine& group_;
  TreeAgreement agreement_;
  const Tree state_;
  std::string values_;
  const Standing mine_;
  Stage stage_ = Stage::trees;
  std::vector<Told> told_;  // by rank
  HandOver plan_;
  std::vector<Block> blocks_;
  std::size_t next_block_ = 0, next_taker_ = 0;
  std::deque<Moving> moving_;  // the oldest first
  bool awaits_oldest_ = false;
  std::uint64_t length_ = 0;
  std::vector<std::uint64_t> failures_;  // by rank
};

}  // namespace ringlet
