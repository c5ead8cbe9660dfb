#include "core/gradients/tree_agreement.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/printable.hpp"
#include "core/engine/requests.hpp"
#include "core/gradients/tree_text.hpp"

namespace ringlet {

namespace {

/// Bounds the memory that a peer can make this rank allocate. The text of a tree of a million tensors is shorter.
constexpr std::uint64_t kMaxTextBytes = 256 << 20;

}  // namespace

TreeAgreement::TreeAgreement(const GroupEngine& group, Agreements& agreements, std::string call, const Tree& tree)
    : group_(group),
      agreements_(agreements),
      call_(std::move(call)),
      own_(group.options().size == 1 ? std::string() : written(tree)),
      hash_(hash_of(own_)) {}

Procedure::Action TreeAgreement::next() {
  switch (stage_) {
    case Stage::begin:
      if (group_.options().size == 1 || agreements_.contains(hash_)) return Done{};
      stage_ = Stage::compare;
      hashes_.resize(static_cast<std::size_t>(group_.options().size));
      return run(for_purpose(Purpose::tree, make_all_gather(std::span<const std::uint64_t>(&hash_, 1), hashes_, group_.options())));
    case Stage::compare:
      return compare();
    case Stage::length:
      return tell_length();
    case Stage::text:
      return tell_text();
    case Stage::describe:
      break;
  }
  return Done{describe()};
}

Procedure::Action TreeAgreement::compare() {
  const auto other = std::find_if(hashes_.begin(), hashes_.end(), [&](std::uint64_t hash) { return hash != hashes_[0]; });
  if (other == hashes_.end()) {
    agreements_.add(hash_);
    return Done{};
  }
  ranks_[1] = static_cast<int>(other - hashes_.begin());
  return tell_length();
}

Procedure::Action TreeAgreement::tell_length() {
  stage_ = Stage::text;
  if (group_.options().rank == ranks_[side_]) texts_[side_] = own_;
  length_ = texts_[side_].size();
  return run(for_purpose(Purpose::tree, make_broadcast(std::span(&length_, 1), ranks_[side_], group_.options())));
}

Procedure::Action TreeAgreement::tell_text() {
  if (length_ > kMaxTextBytes) return Done{unreadable(side_, "has " + std::to_string(length_) + " bytes")};
  std::string& text = texts_[side_];
  text.resize(static_cast<std::size_t>(length_));
  stage_ = side_ + 1 == kSides ? Stage::describe : Stage::length;
  return run(
      for_purpose(Purpose::tree, make_broadcast(TensorView(text.data(), DType::u8, text.size()), ranks_[side_++], group_.options())));
}

Status TreeAgreement::describe() const {
  std::optional<Tree> trees[kSides];
  for (std::size_t side = 0; side < kSides; ++side) {
    trees[side] = read_tree(texts_[side]);
    if (!trees[side]) return unreadable(side, "cannot be read");
  }
  const auto whose = [&](std::size_t side) { return "rank " + std::to_string(ranks_[side]) + "'s"; };
  return {Errc::mismatch, call_ + ": the ranks' trees differ: " + printable(difference(*trees[0], whose(0), *trees[1], whose(1))),
          group_.members().world_rank(ranks_[1])};
}

Status TreeAgreement::unreadable(std::size_t side, const std::string& what) const {
  return {Errc::mismatch, call_ + ": the ranks' trees differ, and what rank " + std::to_string(ranks_[side]) + " says of its own " + what,
          group_.members().world_rank(ranks_[side])};
}

}  // namespace ringlet
