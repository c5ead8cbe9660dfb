#include "native/agreement.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <sstream>

#include "native/group_access.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

namespace {

/// One line per leaf: name, dtype's number, extents.
std::string written(const Tree& tree) {
  std::string text;
  for (const Leaf& leaf : tree) {
    text += fmt::format("{}\n{}", leaf.name, static_cast<int>(leaf.values.dtype()));
    for (const auto extent : leaf.values.shape().extents()) text += fmt::format(" {}", extent);
    text += '\n';
  }
  return text;
}

/// Tensors without memory, for comparing.
Tree read(const std::string& text) {
  Tree tree;
  std::istringstream lines(text);
  for (std::string name, shape; std::getline(lines, name) && std::getline(lines, shape);) {
    std::istringstream numbers(shape);
    int dtype = 0;
    numbers >> dtype;
    std::vector<std::int64_t> extents;
    for (std::int64_t extent; numbers >> extent;) extents.push_back(extent);
    tree.add(name, TensorView(nullptr, static_cast<DType>(dtype), Shape(std::span<const std::int64_t>(extents))));
  }
  return tree;
}

Tree tree_of(Group& group, const Tree& own, int rank, Stream stream) {
  std::string text = group.rank() == rank ? written(own) : std::string();
  std::uint64_t length = text.size();
  group.broadcast(std::span(&length, 1), rank, {.stream = stream});
  text.resize(length);
  group.broadcast(TensorView(text.data(), DType::u8, text.size()), rank, {.stream = stream});
  return read(text);
}

}  // namespace

void require_same_tree(Group& group, std::string_view call, const Tree& tree, Stream stream) {
  if (group.size() == 1) return;
  const std::string own = written(tree);
  const std::uint64_t hash = XXH3_64bits(own.data(), own.size());
  SharedGroup& shared = GroupAccess::shared(group);
  if (shared.has_agreed_on(hash)) return;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(group.size()));
  group.all_gather(std::span(&hash, 1), hashes, {.stream = stream});
  const auto other = std::find_if(hashes.begin(), hashes.end(), [&](std::uint64_t value) { return value != hashes[0]; });
  if (other == hashes.end()) return shared.agree_on(hash);
  const auto rank = static_cast<int>(other - hashes.begin());
  const Tree first = tree_of(group, tree, 0, stream);
  const Tree second = tree_of(group, tree, rank, stream);
  throw MismatchError(
      {Errc::mismatch,
       fmt::format("{}: the ranks' trees differ: {}", call, difference(first, "rank 0's", second, fmt::format("rank {}'s", rank))), rank});
}

}  // namespace ringlet::native
