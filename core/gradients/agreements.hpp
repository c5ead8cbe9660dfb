#pragma once

#include <cstdint>
#include <unordered_set>

namespace ringlet {

/// Remembers what all ranks of a group have agreed on, by its hash, so that it is not compared again. Only one thread may use it at a time.
class Agreements {
 public:
  virtual ~Agreements() = default;
  virtual bool contains(std::uint64_t hash) const { return hashes_.contains(hash); }
  virtual void add(std::uint64_t hash) {
    // Every rank adds the same agreements in the same order, so all ranks forget them at the same moment.
    if (hashes_.size() == kMaxRemembered) hashes_.clear();
    hashes_.insert(hash);
  }

 private:
  static constexpr std::size_t kMaxRemembered = 4096;
  std::unordered_set<std::uint64_t> hashes_;
};

}  // namespace ringlet
