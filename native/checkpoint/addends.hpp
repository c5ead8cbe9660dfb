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
/// those who want an addend get the sum, each for its own part of the elements, and zeros for the rest, so that the sum stays the same.
class AddendLoad {
 public:
  /// Only what `checkpoint` wants is loaded. Collective where the checkpoint has addends.
  AddendLoad(const Exchange& exchange, const Checkpoint& checkpoint, const Manifest& manifest);
  AddendLoad(const AddendLoad&) = delete;
  AddendLoad& operator=(const AddendLoad&) = delete;

  /// Appends what is to be read, which this object owns.
  void append_to(std::vector<GroupTensor>& tensors, std::vector<const Manifest::Tensor*>& placed) const;
  /// Takes the memory for it. Throws `std::bad_alloc` where it is short.
  void take_memory();
  /// Gives what was read to those who want it. Throws as take_memory() does.
  void hand_over();

 private:
  /// What one rank had, as a tensor of its own.
  struct Part {
    Checkpoint::Entry entry;
    Manifest::Tensor placed;
    std::vector<float> memory;  // the elements that this rank reads, from `first` on
    std::size_t first = 0, count = 0;
  };
  struct Wanted {
    detail::Addends* by;
    std::string name;
    const Manifest::Tensor* saved;
    std::size_t begin = 0, end = 0;  // in parts_
  };
  void add_part(const Manifest::Tensor& saved, const Manifest::Piece& piece, const std::vector<int>& takers);
  std::vector<float> sum_of(const Wanted& wanted);

  const Checkpoint& checkpoint_;
  const int rank_, ranks_;
  std::deque<Part> parts_;
  std::vector<Wanted> wanted_;
};

}  // namespace ringlet::native
