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

/// Named tensors in the caller's memory: a model's parameters, its gradients, an optimizer's state. Order is that of insertion and must
/// be the same on every rank. A value: copies view the same memory. Not thread-safe while it is changed.
class Tree {
 public:
  /// Empty.
  Tree() = default;
  /// Unflattens: throws as `add` does.
  ///@{
  Tree(std::initializer_list<Leaf> leaves) : Tree(std::span<const Leaf>(leaves.begin(), leaves.size())) {}
  explicit Tree(std::span<const Leaf> leaves);
  ///@}

  /// Appends a leaf. Throws `InvalidArgument` for a name that is empty or has an empty level ("a..b"), stands in the tree already, or would
  /// be a leaf and a level at once ("a" beside "a.b").
  Tree& add(std::string name, TensorView values);
  /// Appends all leaves of `children` below `name`. Throws as the other `add` does; what came before the leaf at fault stays.
  Tree& add(std::string_view name, const Tree& children);

  /// Whether a leaf of this name can be added: ok, or what `add` would throw.
  Status accepts(std::string_view name) const;

  /// Flattens: the leaves with their whole names, in order. Valid until the tree changes.
  ///@{
  std::span<const Leaf> leaves() const noexcept { return leaves_; }
  auto begin() const noexcept { return leaves_.begin(); }
  auto end() const noexcept { return leaves_.end(); }
  ///@}
  /// Number of leaves.
  std::size_t size() const noexcept { return leaves_.size(); }
  /// Whether there is no leaf.
  bool empty() const noexcept { return leaves_.empty(); }
  /// A leaf by its position, below size().
  const Leaf& operator[](std::size_t index) const noexcept { return leaves_[index]; }
  /// Null where there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// Throws `InvalidArgument` where there is none of that name.
  const TensorView& at(std::string_view name) const;
  /// The position of a leaf; throws as `at` does.
  std::size_t index_of(std::string_view name) const;

  /// What stands below `name`, with names that begin there; empty where nothing does.
  Tree below(std::string_view name) const;
  /// The names of the first level, each once, in order.
  std::vector<std::string> children() const;

  /// Elements, and bytes without gaps, of all leaves.
  ///@{
  std::size_t count() const noexcept;
  std::size_t bytes() const noexcept;
  ///@}

  /// A tree of the same names whose tensors are `function(name, values)`.
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
  Positions positions_;  // of leaves; kLevel for the levels above them
};

/// Where two trees differ in number, names, order, dtypes or shapes: one sentence that names the first difference and both sides; empty
/// where they agree. `first` and `second` say whose the trees are ("gradients", "parameters").
std::string difference(const Tree& a, std::string_view first, const Tree& b, std::string_view second);

}  // namespace ringlet
