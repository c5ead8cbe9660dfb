#pragma once

#include <cstdint>
#include <unordered_set>

namespace ringlet {

/// What all ranks of a group have been found to agree on, by its hash, so that it need not be compared again. One thread at a time.
class Agreements {
 public:
  virtual ~Agreements() = default;
  virtual bool contains(std::uint64_t hash) const { return hashes_.contains(hash); }
  virtual void add(std::uint64_t hash) {
    // Every rank has seen the same agreements in the same order, so all forget at once.
    if (hashes_.size() == kMostRemembered) hashes_.clear();
    hashes_.insert(hash);
  }

 private:
  static constexpr std::size_t kMostRemembered = 4096;
  std::unordered_set<std::uint64_t> hashes_;
};

}  // namespace ringlet
