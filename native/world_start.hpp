#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "native/door.hpp"
#include "native/status/membership.hpp"
#include "native/world_config.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::native {

class MeetingStop;

/// With which the first world of a process meets.
struct MeetingSockets {
  UniqueFd listener{};
  WebFiles web{};  // of a world that is not elastic; else the door has them
};

/// Duplicates of GivenSockets.
struct WorldSockets {
  MeetingSockets meeting{};
  DoorSockets door{};
  UniqueFd membership{};
};

/// How this rank comes into a world.
enum class WorldEntry : std::uint8_t { first, growth, join };

/// What a rank has when a world of it begins, beside its settings. Its worlds hand it on.
struct WorldStart {
  WorldEntry entry = WorldEntry::first;
  std::shared_ptr<Door> door{};                 // of an elastic world
  std::shared_ptr<MembershipLog> membership{};  // null where neither `ringlet status` nor a starter is to be told
  // How often a caller that waited was interrupted, in this world and those before it.
  std::shared_ptr<std::atomic<int>> interruptions = std::make_shared<std::atomic<int>>(0);
  std::uint64_t lineage = 0;
  std::shared_ptr<MeetingStop> stop{};  // unset: the meeting ends by itself
};

/// For the first world of a process, or to join a group. Throws where its door cannot be opened.
WorldStart make_start(const WorldConfig& config, DoorSockets door = {}, UniqueFd membership = {});

}  // namespace ringlet::native
