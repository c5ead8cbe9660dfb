#include "core/gradients/tree_text.hpp"

#include <charconv>
#include <cstdint>
#include <vector>

#include "core/base/checked_shape.hpp"

namespace ringlet {

namespace {

/// Takes a line of numbers off the front of `text`; nothing if there is no such line.
std::optional<std::vector<std::int64_t>> take_numbers(std::string_view& text) {
  std::vector<std::int64_t> numbers;
  for (;;) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size()) return std::nullopt;
    numbers.push_back(number);
    const char separator = *end;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    if (separator == '\n') return numbers;
    if (separator != ' ') return std::nullopt;
  }
}

}  // namespace

std::string written(const Tree& tree) {
  std::string text;
  for (const Leaf& leaf : tree) {
    text += std::to_string(leaf.name.size()) + ' ' + std::to_string(static_cast<int>(leaf.values.dtype()));
    for (const auto extent : leaf.values.shape().extents()) text += ' ' + std::to_string(extent);
    text += '\n' + leaf.name + '\n';
  }
  return text;
}

std::optional<Tree> read_tree(std::string_view text) {
  Tree tree;
  while (!text.empty()) {
    const auto numbers = take_numbers(text);
    if (!numbers || numbers->size() < 2) return std::nullopt;
    const auto name_bytes = (*numbers)[0];
    const auto dtype = from_number<DType>((*numbers)[1]);
    if (name_bytes < 0 || static_cast<std::uint64_t>(name_bytes) >= text.size()) return std::nullopt;
    if (!dtype) return std::nullopt;
    const auto shape = checked_shape(std::span(*numbers).subspan(2));
    const std::string name(text.substr(0, static_cast<std::size_t>(name_bytes)));
    if (!shape.ok() || !tree.accepts(name).ok()) return std::nullopt;
    tree.add(name, TensorView(nullptr, *dtype, shape.value()));
    if (text[name.size()] != '\n') return std::nullopt;
    text.remove_prefix(name.size() + 1);
  }
  return tree;
}

}  // namespace ringlet
