#include "core/engine/group_context.hpp"

#include <algorithm>
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

std::uint64_t number_in(std::span<const std::uint64_t> by_stream, std::size_t stream) {
  return stream < by_stream.size() ? by_stream[stream] : 0;
}

}  // namespace

GroupContext::GroupContext(GroupHost& host, Membership members, int rank)
    : host_(host),
      members_(std::move(members)),
      options_(options_of(host.options(), members_, rank)),
      left_(static_cast<std::size_t>(members_.size())) {
  RINGLET_CHECK(rank >= 0 && rank < members_.size() && members_.world_rank(rank) == host.options().rank);
  // Earlier ones are not needed: no member has started an operation of a group that another does not have, so the last one holds for all.
  if (const wire::PartsChange* change = host.last_change()) change_speeds(*change, {});
}

const Topology& GroupContext::topology_of(std::uint16_t stream, std::uint64_t sequence) const {
  const auto found = std::find_if(changes_.rbegin(), changes_.rend(),
                                  [&](const SpeedsFrom& change) { return sequence >= number_in(change.first, stream); });
  return found != changes_.rend() ? found->topology : options_.topology;
}

bool GroupContext::change_speeds(const wire::PartsChange& change, std::span<const std::uint64_t> unstarted) {
  if (!has_use_of_speeds()) return true;
  std::vector<std::uint64_t> first;
  for (const wire::GroupNumbers& group : change.first)
    if (group.key == members_.key()) first = group.numbers;
  for (std::size_t stream = 0; stream < unstarted.size(); ++stream)
    if (number_in(first, stream) < unstarted[stream]) return false;
  std::vector<std::uint32_t> speeds;
  for (int member = 0; member < members_.size(); ++member)
    speeds.push_back(change.speeds[static_cast<std::size_t>(members_.world_rank(member))]);
  Topology topology = options_.topology;
  topology.set_speeds(speeds);
  changes_.push_back({std::move(first), std::move(topology)});
  // A change whose operations have all started is not asked for again, once the one behind it holds for all that start.
  const auto holds_for_all = [&](const SpeedsFrom& kept) {
    for (std::size_t stream = 0; stream < kept.first.size(); ++stream)
      if (kept.first[stream] > number_in(unstarted, stream)) return false;
    return true;
  };
  while (changes_.size() > 1 && holds_for_all(changes_[1])) changes_.pop_front();
  return true;
}

void GroupContext::fail_for(int peer, const std::string& text) {
  host_.on_violation(members_.world_rank(peer), members_.name_of(peer) + " sent " + text);
}

void GroupContext::complete(Completion completion, const Status& status) const {
  loop().defer([completion = std::move(completion), status] { completion(status); });
}

std::string GroupContext::operation_name(std::uint16_t stream, std::uint64_t sequence) const {
  return "operation " + std::to_string(sequence) + " of " + stream_name(stream);
}

std::string GroupContext::stream_name(std::uint16_t stream) const { return "stream " + std::to_string(stream) + members_.suffix(); }

void GroupContext::record_message(std::uint16_t stream, std::uint64_t sequence, bool outgoing, const MessageTask& task, bool failed) {
  Trace* trace = usable(options_.session.trace);
  if (trace == nullptr || task.since == Instant{}) return;
  const auto [track, is_new] = message_tracks_.try_emplace({stream, outgoing});
  if (is_new) track->second = trace->add_track((outgoing ? "messages sent on " : "messages received on ") + stream_name(stream));
  TraceRecord record;
  record.track = track->second;
  record.name = outgoing ? "send" : "recv";
  record.category = kMessageCategory;
  record.begin = task.since;
  record.end = trace->now();
  record.overlaps = true;
  record.failed = failed;
  record.peer = task.peer == kAnySource ? -1 : members_.world_rank(task.peer);
  record.bytes = task.shape.bytes();
  record.number = sequence;
  record.dtype = name_of(task.shape.dtype);
  trace->record(record);
}

GroupContext::Departure GroupContext::departure(int peer) const {
  if (host_.has_left_world(members_.world_rank(peer))) return Departure::from_world;
  return left_[static_cast<std::size_t>(peer)] ? Departure::from_group : Departure::none;
}

}  // namespace ringlet
