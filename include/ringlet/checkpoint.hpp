#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <ringlet/error.hpp>
#include <ringlet/group.hpp>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace ringlet {

/// A value that is saved beside the tensors, such as a seed, a learning rate or a data set's name.
using CheckpointValue = std::variant<std::int64_t, std::uint64_t, double, std::string>;

namespace detail {

/// f32 of which each rank has its own, and of which only the sum over the ranks counts: what rounding has left of its gradients, say.
class Addends {
 public:
  virtual ~Addends() = default;
  /// This rank's, by name, in memory that is borrowed.
  virtual std::map<std::string, std::span<float>> own() = 0;
  /// Whether this rank takes one of that name. It gets no part of others.
  virtual bool wants(const std::string& name) const = 0;
  /// Takes what a checkpoint has for this rank in place of all that it had.
  virtual void take(std::map<std::string, std::vector<float>> values) = 0;
};

}  // namespace detail

/// The contents of a checkpoint that is saved or loaded: tensors in the caller's memory, borrowed while `save_checkpoint` or
/// `load_checkpoint` runs, and values that it holds itself. Every rank adds the same names in the same order. Only one thread may use it at
/// a time.
class Checkpoint {
 public:
  /// A tensor of the whole group, and the part of it that this rank holds.
  struct Entry {
    std::string name;                  ///< the full name, which begins with the name given to add(): "model.layers.0.weight"
    TensorView values;                 ///< this rank's part
    Shape full_shape;                  ///< the shape of the whole tensor
    std::vector<std::int64_t> bounds;  ///< rank r holds the rows bounds[r] to bounds[r + 1]; if empty, every rank holds all
  };

  /// Adds tensors that every rank holds whole and that are equal on all ranks. They are called "name.leaf". Each rank writes its share of
  /// their rows. This method and the next two throw `InvalidArgument` for an empty `name` and for a tensor that was added already.
  Checkpoint& add(std::string_view name, const Tree& tensors);
  /// Adds this rank's shards of tensors that `layout` splits over the group. Throws `InvalidArgument` for a leaf that the layout does not
  /// contain. Whether the shapes are those of this rank's shards is checked when the checkpoint is saved or loaded.
  Checkpoint& add_sharded(std::string_view name, const Tree& shards, const ShardLayout& layout);
  /// Adds an optimizer's state: leaves "parameter.slot", each of the shape of this rank's shard of "parameter" in `layout`. Throws as
  /// add_sharded() does.
  Checkpoint& add_slots(std::string_view name, const Tree& slots, const ShardLayout& layout);

  /// Adds what GradientAverager::add_to() and the like add: tensors "name.…" of which each rank has its own, also of other names than the
  /// other ranks' or none. As many ranks as have saved them get back their own. Another number gets the sum, divided among those who
  /// want it. A checkpoint without them is loaded all the same, and one with others, too. Throws `InvalidArgument` where a name was added
  /// already, or begins with such a one and a dot.
  Checkpoint& add_addends(std::string name, std::shared_ptr<detail::Addends> addends);

  /// Sets a value, which must be equal on all ranks when it is saved. Throws `InvalidArgument` for a name or a text that is not UTF-8.
  ///@{
  template <std::integral T>
  Checkpoint& set(std::string name, T value) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return put(std::move(name), static_cast<Wide>(value));
  }
  Checkpoint& set(std::string name, double value) { return put(std::move(name), value); }
  Checkpoint& set(std::string name, std::string value) { return put(std::move(name), std::move(value)); }
  ///@}

  /// Returns the value of that name, or null if there is none.
  const CheckpointValue* find(std::string_view name) const;
  /// Returns the value as a T (std::int64_t, std::uint64_t, double or std::string). Throws `InvalidArgument` if there is no value of that
  /// name or it has another type.
  template <class T>
  const T& get(std::string_view name) const {
    const CheckpointValue* value = find(name);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    if (!typed) refuse_get(name, CheckpointValue(T{}));
    return *typed;
  }

  /// Whether a tensor of this full name was added; those of addends do not count.
  bool has(const std::string& name) const { return names_.contains(name); }
  /// The tensors, in the order in which they were added.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// What add_addends() has added.
  const std::vector<std::pair<std::string, std::shared_ptr<detail::Addends>>>& addends() const noexcept { return addends_; }
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
  std::vector<std::pair<std::string, std::shared_ptr<detail::Addends>>> addends_;
  std::map<std::string, CheckpointValue, std::less<>> values_;
};

/// Options of save_checkpoint.
struct SaveOptions {
  /// The training step, which names the checkpoint. A checkpoint of the same step is replaced.
  std::uint64_t step = 0;
  /// How many checkpoints are kept, including this one: at least 1. Older ones are removed once this one is safe on all ranks. Checkpoints
  /// of later steps are kept.
  int keep = 2;
  Stream stream{};  ///< the stream of all its collectives
  /// The limit for each operation between ranks, which includes the wait for the rank with the slowest disk. If unset, it is the group's
  /// timeout.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// The result of save_checkpoint.
struct SaveReport {
  std::filesystem::path path;     ///< the checkpoint's folder
  std::uint64_t bytes = 0;        ///< bytes that this rank wrote
  std::uint64_t total_bytes = 0;  ///< bytes that all ranks wrote
};

/// Options of load_checkpoint and latest_checkpoint.
struct LoadOptions {
  /// The step to load. If unset, the newest complete step is loaded.
  std::optional<std::uint64_t> step{};
  Stream stream{};  ///< the stream of all its collectives
  /// The limit for each operation between ranks, as in SaveOptions::timeout.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// The `MismatchError` of load_checkpoint: the caller's checkpoint and the saved one differ in a tensor.
class CheckpointMismatch : public MismatchError {
 public:
  /// How they differ.
  enum class Kind {
    not_saved,   ///< only the caller's has the tensor
    not_loaded,  ///< only the saved one has it
    other_type   ///< their dtypes or shapes differ
  };
  /// Makes the error of a status with the code Errc::mismatch.
  CheckpointMismatch(Status status, Kind kind, std::string tensor)
      : MismatchError(std::move(status)), kind_(kind), tensor_(std::move(tensor)) {}
  /// How they differ in tensor().
  Kind kind() const noexcept { return kind_; }
  /// The full name of the first tensor that differs: "model.layers.0.weight".
  const std::string& tensor() const noexcept { return tensor_; }

 private:
  Kind kind_;
  std::string tensor_;
};

/// Saves into a folder "step-00000120" below `directory`: one safetensors file per rank and a manifest. Collective. The ranks may share the
/// directory or have one each (on machines without a shared disk). The checkpoints saved before stay loadable until the new one is safe on
/// all disks, at whatever moment a process or machine dies. Nobody else may save into the directory at the same time.
///
/// Every rank throws the same error: `IoError`, naming rank, file and reason, if a rank cannot write; `InvalidArgument` if a tensor does
/// not fit its layout; `MismatchError` if the ranks do not save the same. After these errors nothing has changed, and the group stays
/// usable. A lost rank ends the group; the next save removes the files that the interrupted one left behind.
SaveReport save_checkpoint(Group group, const std::filesystem::path& directory, const Checkpoint& checkpoint, const SaveOptions& options);

/// Fills the tensors and values of `checkpoint` and returns the step, or nothing if there is no checkpoint yet. Collective. The number of
/// ranks and the sharding of tensors may differ from when they were saved. A rank reads what it needs from the files that it sees; the
/// lowest rank that sees another file sends it the contents. A step with a file that no rank sees is skipped for an older step.
///
/// Every rank throws the same error before any tensor is written: `IoError`, naming rank, file and reason, if a file is missing, damaged or
/// of another version; `CheckpointMismatch` if names, dtypes or shapes differ from the saved ones. The group stays usable. If reading fails
/// after everything was verified, the contents of the tensors are unspecified.
std::optional<std::uint64_t> load_checkpoint(Group group, const std::filesystem::path& directory, Checkpoint& checkpoint,
                                             const LoadOptions& options = {});

/// Returns the step that `load_checkpoint` would load. Collective. Throws as `load_checkpoint` does for errors that can be found without
/// reading tensors.
std::optional<std::uint64_t> latest_checkpoint(Group group, const std::filesystem::path& directory, const LoadOptions& options = {});

}  // namespace ringlet
