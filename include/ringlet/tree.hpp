#pragma once

#include <concepts>
#include <initializer_list>
#include <ringlet/status.hpp>
#include <ringlet/tensor.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ringlet {

/// A tensor with its path in a tree: the names of the levels, outermost first, joined by dots ("layers.0.weight").
struct Leaf {
  std::string name;   ///< "layers.0.weight"
  TensorView values;  ///< in the caller's memory
};

/// Named tensors in the caller's memory: a model's parameters, its gradients, or an optimizer's state. They are in the order of insertion,
/// which must be the same on every rank. A tree is a value: copies view the same memory. It is not thread-safe while it is changed.
class Tree {
 public:
  /// An empty tree.
  Tree() = default;
  /// Makes a tree of leaves with full names (unflattens). Throws as `add` does.
  ///@{
  Tree(std::initializer_list<Leaf> leaves) : Tree(std::span<const Leaf>(leaves.begin(), leaves.size())) {}
  explicit Tree(std::span<const Leaf> leaves);
  ///@}

  /// Appends a leaf. Throws `InvalidArgument` for a name that is empty, has an empty level ("a..b"), is in the tree already, or would be a
  /// leaf and a level at once ("a" beside "a.b").
  Tree& add(std::string name, TensorView values);
  /// Appends all leaves of `children` below `name`. Throws as the other `add` does; the leaves before the invalid one remain in the tree.
  Tree& add(std::string_view name, const Tree& children);

  /// Whether a leaf of this name can be added: ok, or the status that `add` would throw.
  Status accepts(std::string_view name) const;

  /// The leaves with their full names, in order (flattens). Valid until the tree changes.
  ///@{
  std::span<const Leaf> leaves() const noexcept { return leaves_; }
  auto begin() const noexcept { return leaves_.begin(); }
  auto end() const noexcept { return leaves_.end(); }
  ///@}
  /// The number of leaves.
  std::size_t size() const noexcept { return leaves_.size(); }
  /// Whether the tree has no leaf.
  bool empty() const noexcept { return leaves_.empty(); }
  /// The leaf at a position below size().
  const Leaf& operator[](std::size_t index) const noexcept { return leaves_[index]; }
  /// The tensor of that name, or null if there is none.
  const TensorView* find(std::string_view name) const;
  /// The tensor of that name. Throws `InvalidArgument` if there is none.
  const TensorView& at(std::string_view name) const;
  /// The position of the leaf of that name; throws as `at` does.
  std::size_t index_of(std::string_view name) const;

  /// The tree below the level `name`, with names that begin there; empty if there is no such level.
  Tree below(std::string_view name) const;
  /// The names of the first level in order, each once.
  std::vector<std::string> children() const;

  /// The number of elements, and of bytes without gaps, of all leaves.
  ///@{
  std::size_t count() const noexcept;
  std::size_t bytes() const noexcept;
  ///@}

  /// Makes a tree of the same names whose tensors are `function(name, values)`.
  template <class Function>
    requires std::convertible_to<std::invoke_result_t<Function&, const std::string&, const TensorView&>, TensorView>
  Tree map(Function function) const {
    Tree mapped(*this);
    for (Leaf& leaf : mapped.leaves_) leaf.values = function(leaf.name, leaf.values);
    return mapped;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Positions = std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>>;
  static constexpr std::size_t kLevel = static_cast<std::size_t>(-1);

  std::vector<Leaf> leaves_;
  Positions positions_;  // the position of each leaf; kLevel for the levels above leaves
};

/// Compares two trees in number, names, order, dtypes and shapes. Returns one sentence that names the first difference and both sides, or
/// an empty text if they agree. `first` and `second` are what to call the trees ("gradients", "parameters").
std::string difference(const Tree& a, std::string_view first, const Tree& b, std::string_view second);

}  // namespace ringlet
