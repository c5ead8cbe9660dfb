#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/gradients/residuals.hpp"

namespace ringlet {

/// Remembers what all ranks of a group have agreed on, by its hash, so that it is not compared again, and the residuals of such trees. Only
/// one thread may use it at a time.
class Agreements {
 public:
  virtual ~Agreements() = default;
  virtual bool contains(std::uint64_t hash) const { return hashes_.contains(hash); }
  virtual void add(std::uint64_t hash) {
    // Every rank adds the same agreements in the same order, so all ranks forget them at the same moment.
    if (hashes_.size() == kMaxRemembered) {
      hashes_.clear();
      residuals_.clear();
    }
    hashes_.insert(hash);
  }
  /// Those that keep_residuals() was given last for a tree of this hash; none if they are taken already.
  virtual Residuals take_residuals(std::uint64_t hash) {
    const auto kept = residuals_.extract(hash);
    return kept.empty() ? Residuals() : std::move(kept.mapped());
  }
  virtual void keep_residuals(std::uint64_t hash, Residuals residuals) { residuals_.insert_or_assign(hash, std::move(residuals)); }

 private:
  static constexpr std::size_t kMaxRemembered = 4096;
  std::unordered_set<std::uint64_t> hashes_;
  std::unordered_map<std::uint64_t, Residuals> residuals_;
};

}  // namespace ringlet
