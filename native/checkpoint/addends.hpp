#pragma once

#include <deque>
#include <ringlet/checkpoint.hpp>
#include <string>
#include <vector>

#include "native/checkpoint/exchange.hpp"
#include "native/checkpoint/group_tensor.hpp"
#include "native/checkpoint/manifest.hpp"

namespace ringlet::native {

/// All ranks' addends, as tensors of the group: one rank's after the other.
struct GroupAddends {
  std::deque<Checkpoint::Entry> entries;
  std::vector<GroupTensor> tensors;  // of the entries
};
/// Collective where the checkpoint has addends. Throws `MismatchError` where ranks have some of one name and another length.
GroupAddends gather_addends(const Exchange& exchange, const Checkpoint& checkpoint);

/// This rank's part of the addends that a checkpoint on disk has. As many ranks as have saved them get back their own; of another number
/// each gets the sum for its own part of the elements, and zeros for the rest, so that the sum over the ranks stays the same.
class AddendLoad {
 public:
  /// Only what `checkpoint` wants is loaded.
  AddendLoad(const Checkpoint& checkpoint, const Manifest& manifest, int rank, int ranks);
  AddendLoad(const AddendLoad&) = delete;
  AddendLoad& operator=(const AddendLoad&) = delete;

  /// Appends what is to be read, which this object owns.
  void append_to(std::vector<GroupTensor>& tensors, std::vector<const Manifest::Tensor*>& placed) const;
  /// Gives what was read to those who want it.
  void hand_over();

 private:
  /// What one rank had, as a tensor of its own.
  struct Part {
    Checkpoint::Entry entry;
    Manifest::Tensor placed;
    std::vector<float> memory;  // the elements that this rank reads, from `first` on
    std::size_t first = 0;
  };
  struct Wanted {
    std::shared_ptr<detail::Addends> by;
    std::string name;
    std::size_t count = 0;
    std::size_t begin = 0, end = 0;  // in parts_
  };
  void add(const Manifest::Tensor& saved, const std::shared_ptr<detail::Addends>& by, std::string name);
  void add_part(const Manifest::Tensor& saved, const Manifest::Piece& piece);

  const Checkpoint& checkpoint_;
  const int rank_, ranks_;
  const bool gets_own_;
  std::deque<Part> parts_;
  std::vector<Wanted> wanted_;
};

}  // namespace ringlet::native
