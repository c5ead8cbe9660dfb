#pragma once

#include <ringlet/group.hpp>
#include <ringlet/tree.hpp>
#include <string_view>

namespace ringlet::native {

/// Compares names, order, dtypes and shapes of the ranks' trees: where they differ, every rank throws the same `MismatchError`, which
/// names the first difference. Collective: one all-gather of 8 bytes a rank where they agree, and nothing where they have agreed on such a
/// tree before. `call` says what the trees were given to.
void require_same_tree(Group& group, std::string_view call, const Tree& tree, Stream stream);

}  // namespace ringlet::native
