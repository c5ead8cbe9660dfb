#pragma once

#include <ringlet/group.hpp>
#include <ringlet/tree.hpp>
#include <string_view>

namespace ringlet::native {

/// Compares names, order, dtypes and shapes of the ranks' trees. Where they differ, every rank throws the same `MismatchError`, which names
/// the first difference. Collective: it costs one all-gather of 8 bytes a rank where the trees agree, and nothing where the ranks have
/// agreed on such a tree before. `call` is the name of the caller's function.
void require_same_tree(Group& group, std::string_view call, const Tree& tree, Stream stream);

}  // namespace ringlet::native
