#include <algorithm>
#include <ringlet/error.hpp>
#include <ringlet/tree.hpp>

#include "core/base/refuse.hpp"

namespace ringlet {

namespace {

bool has_empty_level(std::string_view name) {
  return name.empty() || name.front() == '.' || name.back() == '.' || name.find("..") != std::string_view::npos;
}

std::string describe_leaf(const Leaf& leaf) { return "'" + leaf.name + "' " + describe(leaf.values); }

}  // namespace

Tree::Tree(std::span<const Leaf> leaves) {
  for (const Leaf& leaf : leaves) add(leaf.name, leaf.values);
}

Status Tree::accepts(std::string_view name) const {
  const std::string quoted = "'" + std::string(name) + "'";
  if (has_empty_level(name)) return invalid("the tree's name " + quoted + " is empty or has an empty level; write \"layers.0.weight\"");
  const auto stands = positions_.find(name);
  if (stands != positions_.end())
    return invalid("the tree has " + quoted + " already" + (stands->second == kLevel ? ", as a level above other tensors" : ""));
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto above = positions_.find(name.substr(0, dot));
    if (above != positions_.end() && above->second != kLevel)
      return invalid("the tree has a tensor '" + above->first + "', so there can be no " + quoted + " below it");
  }
  return {};
}

Tree& Tree::add(std::string name, TensorView values) {
  throw_if_failed(accepts(name));
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) positions_.emplace(name.substr(0, dot), kLevel);
  positions_.emplace(name, leaves_.size());
  leaves_.push_back({std::move(name), values});
  return *this;
}

Tree& Tree::add(std::string_view name, const Tree& children) {
  for (const Leaf& leaf : children) add(std::string(name) + "." + leaf.name, leaf.values);
  return *this;
}

const TensorView* Tree::find(std::string_view name) const {
  const auto it = positions_.find(name);
  return it == positions_.end() || it->second == kLevel ? nullptr : &leaves_[it->second].values;
}

std::size_t Tree::index_of(std::string_view name) const {
  const auto it = positions_.find(name);
  if (it == positions_.end() || it->second == kLevel) refuse("the tree has no tensor '" + std::string(name) + "'");
  return it->second;
}

const TensorView& Tree::at(std::string_view name) const { return leaves_[index_of(name)].values; }

Tree Tree::below(std::string_view name) const {
  const std::string prefix = std::string(name) + ".";
  Tree found;
  for (const Leaf& leaf : leaves_)
    if (leaf.name.starts_with(prefix)) found.add(leaf.name.substr(prefix.size()), leaf.values);
  return found;
}

std::vector<std::string> Tree::children() const {
  std::vector<std::string> names;
  for (const Leaf& leaf : leaves_) {
    std::string first = leaf.name.substr(0, leaf.name.find('.'));
    if (std::find(names.begin(), names.end(), first) == names.end()) names.push_back(std::move(first));
  }
  return names;
}

std::size_t Tree::count() const noexcept {
  std::size_t sum = 0;
  for (const Leaf& leaf : leaves_) sum += leaf.values.count();
  return sum;
}

std::size_t Tree::bytes() const noexcept {
  std::size_t sum = 0;
  for (const Leaf& leaf : leaves_) sum += leaf.values.bytes();
  return sum;
}

std::string difference(const Tree& a, std::string_view first, const Tree& b, std::string_view second) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (a[i].name == b[i].name && a[i].values.dtype() == b[i].values.dtype() && a[i].values.shape() == b[i].values.shape()) continue;
    return "tensor " + std::to_string(i) + " is " + describe_leaf(a[i]) + " in " + std::string(first) + " but " + describe_leaf(b[i]) +
           " in " + std::string(second);
  }
  if (a.size() == b.size()) return {};
  const bool longer = a.size() > b.size();
  return "tensor " + std::to_string(both) + ", " + describe_leaf(longer ? a[both] : b[both]) + ", is only in " +
         std::string(longer ? first : second);
}

}  // namespace ringlet
