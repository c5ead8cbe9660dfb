#include <fmt/format.h>

#include <array>
#include <ringlet/checkpoint.hpp>

#include "core/base/refuse.hpp"
#include "native/checkpoint/group_tensor.hpp"
#include "native/checkpoint/load.hpp"
#include "native/checkpoint/save.hpp"

namespace ringlet {

namespace {

std::vector<std::int64_t> bounds_of(const ShardLayout& layout, std::string_view name) {
  std::vector<std::int64_t> bounds{0};
  for (int rank = 0; rank < layout.ranks(); ++rank) bounds.push_back(layout.rows(name, rank).end);
  return bounds;
}

std::string_view type_name(const CheckpointValue& value) {
  constexpr std::array<std::string_view, 4> kNames{"i64", "u64", "double", "text"};
  return kNames[value.index()];
}

}  // namespace

Checkpoint& Checkpoint::add(std::string_view name, const Tree& tensors) { return add_tree(name, tensors, nullptr, Part::whole); }

Checkpoint& Checkpoint::add_sharded(std::string_view name, const Tree& shards, const ShardLayout& layout) {
  return add_tree(name, shards, &layout, Part::shard);
}

Checkpoint& Checkpoint::add_slots(std::string_view name, const Tree& slots, const ShardLayout& layout) {
  return add_tree(name, slots, &layout, Part::slot);
}

Checkpoint& Checkpoint::add_tree(std::string_view name, const Tree& tensors, const ShardLayout* layout, Part part) {
  if (name.empty()) refuse("the tensors of a checkpoint need a name, such as \"parameters\"");
  std::vector<Entry> added;
  for (const Leaf& leaf : tensors) {
    Entry entry{fmt::format("{}.{}", name, leaf.name), leaf.values, leaf.values.shape(), {}};
    if (has(entry.name)) refuse(fmt::format("the checkpoint has '{}' already", entry.name));
    if (layout != nullptr) {
      std::string_view laid_out = leaf.name;
      if (part == Part::slot) {
        const auto dot = laid_out.rfind('.');
        if (dot == std::string_view::npos)
          refuse(fmt::format("the slot '{}' is not named after a parameter; write \"parameter.slot\"", leaf.name));
        laid_out = laid_out.substr(0, dot);
      }
      entry.full_shape = layout->full_shape(laid_out);
      entry.bounds = bounds_of(*layout, laid_out);
    }
    added.push_back(std::move(entry));
  }
  for (Entry& entry : added) {
    names_.insert(entry.name);
    entries_.push_back(std::move(entry));
  }
  return *this;
}

Checkpoint& Checkpoint::add_addends(std::string name, std::shared_ptr<detail::Addends> addends) {
  for (const auto& [kind, other] : addends_)
    if ((kind + ".").starts_with(name + ".") || (name + ".").starts_with(kind + "."))
      refuse(fmt::format("the checkpoint has the addends '{}' already, so none are called '{}'", kind, name));
  addends_.emplace_back(std::move(name), std::move(addends));
  return *this;
}

Checkpoint& Checkpoint::put(std::string name, CheckpointValue value) {
  if (name.empty()) refuse("a checkpoint's value needs a name");
  native::check_utf8("value's name", name);
  if (const auto* text = std::get_if<std::string>(&value)) native::check_utf8("value of " + name, *text);
  values_.insert_or_assign(std::move(name), std::move(value));
  return *this;
}

const CheckpointValue* Checkpoint::find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

void Checkpoint::refuse_get(std::string_view name, const CheckpointValue& wanted) const {
  const CheckpointValue* value = find(name);
  if (value == nullptr) refuse(fmt::format("the checkpoint has no value '{}'", name));
  refuse(fmt::format("the checkpoint's value '{}' is of type {}, not {}", name, type_name(*value), type_name(wanted)));
}

SaveReport save_checkpoint(Group group, const std::filesystem::path& directory, const Checkpoint& checkpoint, const SaveOptions& options) {
  return native::save(group, directory, checkpoint, options, {});
}

std::optional<std::uint64_t> load_checkpoint(Group group, const std::filesystem::path& directory, Checkpoint& checkpoint,
                                             const LoadOptions& options) {
  return native::load(group, directory, checkpoint, options);
}

std::optional<std::uint64_t> latest_checkpoint(Group group, const std::filesystem::path& directory, const LoadOptions& options) {
  return native::find_latest(group, directory, options);
}

}  // namespace ringlet
