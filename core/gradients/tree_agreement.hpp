#pragma once

#include <cstdint>
#include <ringlet/tree.hpp>
#include <string>
#include <vector>

#include "core/engine/group_engine.hpp"
#include "core/engine/procedure.hpp"
#include "core/gradients/agreements.hpp"

namespace ringlet {

/// Compares names, order, dtypes and shapes of the ranks' trees. If they differ, every rank ends with the same `mismatch`, which names the
/// first difference, and the group stays usable. The comparison takes one all-gather of 8 bytes per rank if the trees agree, and nothing if
/// the ranks have agreed on such a tree before. It runs in one group.
class TreeAgreement final : public Procedure {
 public:
  /// `call` names the call that got the trees. Names, dtypes and shapes of `tree` are read in the constructor only. `group` and its
  /// `agreements` outlive this object.
  TreeAgreement(const GroupEngine& group, Agreements& agreements, std::string call, const Tree& tree);
  Action next() override;
  /// A hash of names, order, dtypes and shapes; in a group of one it is the same for all trees.
  std::uint64_t hash() const { return hash_; }

 private:
  enum class Stage : std::uint8_t { begin, compare, length, text, describe };
  /// The two ranks whose trees are compared.
  static constexpr std::size_t kSides = 2;

  Action compare();
  Action tell_length();
  Action tell_text();
  Status describe() const;
  Status unreadable(std::size_t side, const std::string& what) const;

  const GroupEngine& group_;
  Agreements& agreements_;
  const std::string call_;
  const std::string own_;
  std::uint64_t hash_ = 0;
  Stage stage_ = Stage::begin;
  std::vector<std::uint64_t> hashes_;  // by rank
  int ranks_[kSides]{};                // the ranks in this group whose trees differ
  std::string texts_[kSides];
  std::size_t side_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace ringlet
