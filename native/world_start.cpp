#include "native/world_start.hpp"

#include <utility>

namespace ringlet::native {

WorldStart make_start(const WorldConfig& config, DoorSockets door, UniqueFd membership) {
  WorldStart start;
  const bool elastic = config.options.elastic;
  if (elastic) start.door = std::make_shared<Door>(config.door_options, std::move(door), config.token, config.encrypts(), config.ciphers);
  if (elastic || membership) start.membership = std::make_shared<MembershipLog>(std::move(membership));
  return start;
}

}  // namespace ringlet::native
