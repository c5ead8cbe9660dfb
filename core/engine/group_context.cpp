#include "core/engine/group_context.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

WorldOptions options_of(const WorldOptions& world, const Membership& members, int rank) {
  WorldOptions options = world;
  options.rank = rank;
  options.size = members.size();
  std::vector<bool> is_guest;
  std::vector<int> machines;
  std::vector<std::uint32_t> speeds;
  for (int member = 0; member < members.size(); ++member) {
    is_guest.push_back(world.topology.is_guest(members.world_rank(member)));
    if (!world.machines.empty()) machines.push_back(world.machines[static_cast<std::size_t>(members.world_rank(member))]);
    speeds.push_back(world.topology.speed(members.world_rank(member)));
  }
  options.machines = machines;
  options.speeds = speeds;
  options.set_topology(Topology(is_guest, world.leaf_limits));
  options.guests = options.topology.guests();
  return options;
}

}  // namespace

GroupContext::GroupContext(GroupHost& host, Membership members, int rank)
    : host_(host),
      members_(std::move(members)),
      options_(options_of(host.options(), members_, rank)),
      left_(static_cast<std::size_t>(members_.size())) {
  RINGLET_CHECK(rank >= 0 && rank < members_.size() && members_.world_rank(rank) == host.options().rank);
}

void GroupContext::fail_for(int peer, const std::string& text) {
  fail({Errc::protocol_error, members_.name_of(peer) + " sent " + text, members_.world_rank(peer)});
}

void GroupContext::complete(Completion completion, const Status& status) const {
  loop().defer([completion = std::move(completion), status] { completion(status); });
}

std::string GroupContext::operation_name(std::uint16_t stream, std::uint64_t sequence) const {
  return "operation " + std::to_string(sequence) + " of " + stream_name(stream);
}

std::string GroupContext::stream_name(std::uint16_t stream) const { return "stream " + std::to_string(stream) + members_.suffix(); }

GroupContext::Departure GroupContext::departure(int peer) const {
  if (host_.has_left_world(members_.world_rank(peer))) return Departure::from_world;
  return left_[static_cast<std::size_t>(peer)] ? Departure::from_group : Departure::none;
}

}  // namespace ringlet
