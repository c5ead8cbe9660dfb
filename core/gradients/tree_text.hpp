#pragma once

#include <optional>
#include <ringlet/tree.hpp>
#include <string>
#include <string_view>

namespace ringlet {

/// The names, dtypes and shapes of a tree in the form that ranks exchange: for each leaf a line of numbers (bytes of the name, dtype,
/// extents) and a line with the name.
std::string written(const Tree& tree);
/// Reads such a text into tensors without memory, for comparing. A peer wrote the text; nothing is returned if it does not describe a tree.
std::optional<Tree> read_tree(std::string_view text);

}  // namespace ringlet
