#pragma once

#include <optional>
#include <ringlet/tree.hpp>
#include <string>
#include <string_view>

namespace ringlet {

/// Names, dtypes and shapes of a tree, as ranks tell each other: for each leaf a line of numbers (bytes of the name, dtype, extents) and
/// a line with the name.
std::string written(const Tree& tree);
/// Tensors without memory, for comparing. Nothing where the text, which a peer wrote, is not of a tree.
std::optional<Tree> read_tree(std::string_view text);

}  // namespace ringlet
