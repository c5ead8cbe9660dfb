#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <ringlet/group.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

namespace ringlet {

/// What is saved beside tensors: a seed, a learning rate, a data set's name.
using CheckpointValue = std::variant<std::int64_t, std::uint64_t, double, std::string>;

/// What a checkpoint saves, or what it is loaded into: tensors in the caller's memory, borrowed while `save_checkpoint` or
/// `load_checkpoint` runs, and values that it holds itself. Every rank adds the same names in the same order. One thread at a time.
class Checkpoint {
 public:
  /// A tensor of the whole group, and the part of it that this rank holds.
  struct Entry {
    std::string name;                  ///< with the name that it was added under: "model.layers.0.weight"
    TensorView values;                 ///< this rank's part
    Shape full_shape;                  ///< of the tensor as a whole
    std::vector<std::int64_t> bounds;  ///< rank r holds the rows bounds[r] to bounds[r + 1]; none: every rank holds all
  };

  /// Tensors that every rank holds whole and that are equal on all ranks; they are called "name.leaf". Each rank writes its share of their
  /// rows. This and the next two throw `InvalidArgument` for an empty `name` and for a tensor that was added already.
  Checkpoint& add(std::string_view name, const Tree& tensors);
  /// This rank's shards of tensors that `layout` splits over the group. Throws `InvalidArgument` for a leaf that is not laid out; that
  /// shapes are those of this rank's shards is checked when the checkpoint is saved or loaded.
  Checkpoint& add_sharded(std::string_view name, const Tree& shards, const ShardLayout& layout);
  /// An optimizer's state: leaves "parameter.slot", each of the shape of this rank's shard of "parameter" in `layout`. Throws like the
  /// last.
  Checkpoint& add_slots(std::string_view name, const Tree& slots, const ShardLayout& layout);

  /// Sets a value; equal on all ranks when it is saved. Texts are UTF-8.
  ///@{
  template <std::integral T>
  Checkpoint& set(std::string name, T value) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return put(std::move(name), static_cast<Wide>(value));
  }
  Checkpoint& set(std::string name, double value) { return put(std::move(name), value); }
  Checkpoint& set(std::string name, std::string value) { return put(std::move(name), std::move(value)); }
  ///@}

  /// Null where there is none of that name.
  const CheckpointValue* find(std::string_view name) const;
  /// The value as a T (std::int64_t, std::uint64_t, double or std::string). Throws `InvalidArgument` where there is none of that name, or
  /// one of another type.
  template <class T>
  const T& get(std::string_view name) const {
    const CheckpointValue* value = find(name);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    if (!typed) refuse_get(name, CheckpointValue(T{}));
    return *typed;
  }

  /// The tensors, in the order in which they were added.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// The values, by name.
  const std::map<std::string, CheckpointValue, std::less<>>& values() const noexcept { return values_; }
  /// Replaces all values.
  void set_values(std::map<std::string, CheckpointValue, std::less<>> values) { values_ = std::move(values); }

 private:
  enum class Part { whole, shard, slot };
  Checkpoint& add_tree(std::string_view name, const Tree& tensors, const ShardLayout* layout, Part part);
  Checkpoint& put(std::string name, CheckpointValue value);
  [[noreturn]] void refuse_get(std::string_view name, const CheckpointValue& wanted) const;

  std::vector<Entry> entries_;
  std::unordered_set<std::string> names_;
  std::map<std::string, CheckpointValue, std::less<>> values_;
};

/// How save_checkpoint saves.
struct SaveOptions {
  /// The training step that the checkpoint is of: its name. One that is there already is replaced.
  std::uint64_t step = 0;
  /// How many checkpoints stay, with this one; older ones are removed once it is safe on all ranks. At least 1. Later steps stay.
  int keep = 2;
  Stream stream{};  ///< of all its collectives
  /// Of each operation between ranks, the wait for the slowest disk among them; unset: the group's.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// What save_checkpoint has written.
struct SaveReport {
  std::filesystem::path path;     ///< the checkpoint's folder
  std::uint64_t bytes = 0;        ///< by this rank
  std::uint64_t total_bytes = 0;  ///< by all ranks
};

/// What load_checkpoint loads.
struct LoadOptions {
  /// Unset: the newest step that is whole.
  std::optional<std::uint64_t> step{};
  Stream stream{};  ///< of all its collectives
  /// As SaveOptions::timeout.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// Saves into a folder "step-00000120" below `directory`: one safetensors file per rank and a manifest. Collective. The ranks may share
/// the directory or have one each (on machines without a shared disk). What was saved before stays loadable until the new checkpoint is
/// safe on all disks, at whatever moment a process or machine dies. Nobody else may save into the directory at the same time.
///
/// On every rank alike: `IoError` naming rank, file and reason where a rank cannot write; `InvalidArgument` for a tensor that does not fit
/// its layout; `MismatchError` where the ranks do not save the same. Then nothing has changed, and the group lives on. A rank that is lost
/// ends the group as ever; what it leaves behind is removed by the next save.
SaveReport save_checkpoint(Group group, const std::filesystem::path& directory, const Checkpoint& checkpoint, const SaveOptions& options);

/// Fills the tensors and values of `checkpoint` and returns the step; nothing where there is no checkpoint yet. Collective. The number of
/// ranks and how tensors are sharded may differ from when they were saved. A rank reads what it needs from the files that it sees; what it
/// does not see is sent to it by the lowest rank that does. A step whose files are not all seen by some rank is passed over for an
/// older one.
///
/// On every rank alike, before any tensor is written: `IoError` naming rank, file and reason where a file is missing, damaged or of another
/// version; `MismatchError` where names, dtypes or shapes are not those that were saved. The group lives on. If reading fails after all
/// was verified, the tensors' contents are unspecified.
std::optional<std::uint64_t> load_checkpoint(Group group, const std::filesystem::path& directory, Checkpoint& checkpoint,
                                             const LoadOptions& options = {});

/// The step that `load_checkpoint` would load. Collective; throws as that does for what it can see without reading tensors.
std::optional<std::uint64_t> latest_checkpoint(Group group, const std::filesystem::path& directory, const LoadOptions& options = {});

}  // namespace ringlet
