#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ringlet/group.hpp>
#include <span>
#include <vector>

#include "core/elastic/epochs.hpp"

namespace ringlet::native {

class SharedGroup;

/// How the ranks of an elastic world that are left go on without the lost ones: by the worlds of later epochs, and by calls that all of
/// them answer alike. Any thread.
class Survivors {
 public:
  /// Of this group's world; the group outlives it.
  explicit Survivors(SharedGroup& group) : group_(group) {}
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  /// See Group's. `before` gets the new world's ranks as they are in this group's world. A growth is dropped.
  std::shared_ptr<SharedGroup> reform(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage);
  /// The same for a call in whose midst a rank is lost. The program has not asked for the group, which is kept until it calls reform().
  std::shared_ptr<SharedGroup> follow_losses(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage);
  /// See Group's. Each of `least` becomes its least over all ranks, where no rank was lost.
  bool agree(bool mine, const CallOptions& call, std::span<std::int32_t> least = {});

 private:
  Succession await_succession(std::chrono::milliseconds timeout);
  std::shared_ptr<SharedGroup> follow(ringlet::World& next);
  bool settle_votes();

  SharedGroup& group_;
  std::mutex following_;
  std::shared_ptr<SharedGroup> next_;  // of the epoch after this one, until reform() returns the last one
  std::mutex agreeing_, settling_;
  bool settled_ = false;  // Votes were exchanged in this world
  bool trusts_joined_ = false;
};

}  // namespace ringlet::native
