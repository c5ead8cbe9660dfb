#include "native/checkpoint/group_tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/base/arithmetic.hpp"
#include "core/base/refuse.hpp"
#include "core/plan/part_layout.hpp"

namespace ringlet::native {

namespace {

Shape shard_shape(const Checkpoint::Entry& entry, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const auto full = entry.full_shape.extents();
  std::vector<std::int64_t> extents(full.begin(), full.end());
  if (extents.empty()) extents.push_back(1);
  extents[0] = entry.bounds[r + 1] - entry.bounds[r];
  return Shape(std::span<const std::int64_t>(extents));
}

void check_entry(const Checkpoint::Entry& entry, int rank, int ranks) {
  check_utf8("tensor name", entry.name);
  const TensorView& values = entry.values;
  if (!is_valid(values.dtype()))
    refuse(fmt::format("'{}' is of the unknown dtype number {}", entry.name, static_cast<int>(values.dtype())));
  if (!checked_bytes(entry.full_shape.extents(), size_of(values.dtype())))
    refuse(fmt::format("'{}' has the impossible shape {}", entry.name, to_string(entry.full_shape)));
  if (!entry.bounds.empty()) {
    if (entry.bounds.size() != static_cast<std::size_t>(ranks) + 1)
      refuse(fmt::format("'{}' is laid out over {} ranks in a group of {}", entry.name, entry.bounds.size() - 1, ranks));
    const Shape wanted = shard_shape(entry, rank);
    if (!(values.shape() == wanted))
      refuse(fmt::format("'{}' is {} where this rank's shard of {} is {}; shards and optimizer slots have the shape of their layout",
                         entry.name, describe(values), to_string(entry.full_shape), to_string(wanted)));
  }
  if (values.data() == nullptr && values.count() > 0) refuse(fmt::format("'{}' is null but has {} elements", entry.name, values.count()));
}

}  // namespace

void check_utf8(std::string_view what, const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    refuse(fmt::format("the {} '{}' is not valid UTF-8", what, text));
  }
}

std::string addend_name(const std::string& kind, const std::string& name) { return kind + "." + name; }

RowRange GroupTensor::held_by(int rank) const {
  if (entry->bounds.empty()) return {0, rows};
  const auto r = static_cast<std::size_t>(rank);
  return {entry->bounds[r], entry->bounds[r + 1]};
}

RowRange GroupTensor::written_by(int rank, int ranks) const {
  if (!entry->bounds.empty()) return held_by(rank);
  const ElementRange share = rows_of(static_cast<std::size_t>(rows), ranks, rank);
  return {static_cast<std::int64_t>(share.begin), static_cast<std::int64_t>(share.end)};
}

std::vector<GroupTensor> group_tensors(const Checkpoint& checkpoint) {
  std::vector<GroupTensor> tensors;
  for (const Checkpoint::Entry& entry : checkpoint.entries()) {
    const Shape& shape = entry.full_shape;
    const std::int64_t rows = shape.axes() == 0 ? 1 : shape[0];
    const std::uint64_t bytes = shape.count() * size_of(entry.values.dtype());
    tensors.push_back({&entry, rows, rows == 0 ? 0 : bytes / static_cast<std::uint64_t>(rows), 0});
  }
  return tensors;
}

void check(const Checkpoint& checkpoint, int rank, int ranks) {
  for (const Checkpoint::Entry& entry : checkpoint.entries()) check_entry(entry, rank, ranks);
  for (const auto& [kind, addends] : checkpoint.addends())
    for (const auto& [name, values] : addends->own()) {
      const std::string full = addend_name(kind, name);
      check_utf8("tensor name", full);
      if (checkpoint.has(full)) refuse(fmt::format("the checkpoint has '{}' already", full));
    }
}

std::string describe_tensors(const Checkpoint& checkpoint) {
  std::string text;
  for (const Checkpoint::Entry& entry : checkpoint.entries()) {
    text += fmt::format("the tensor '{}' {} {}", entry.name, name_of(entry.values.dtype()), to_string(entry.full_shape));
    text += entry.bounds.empty() ? "\n" : fmt::format(" sharded at {}\n", entry.bounds);
  }
  for (const auto& [kind, addends] : checkpoint.addends()) text += fmt::format("the addends '{}'\n", kind);
  return text;
}

std::string describe_values(const Checkpoint& checkpoint) {
  std::string text;
  for (const auto& [name, value] : checkpoint.values())
    text += fmt::format("the value '{}' {}\n", name, std::visit([](const auto& v) { return fmt::format("{}", v); }, value));
  return text;
}

}  // namespace ringlet::native
