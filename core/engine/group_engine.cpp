#include "core/engine/group_engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

WorldOptions options_of(const WorldOptions& world, const Membership& members, int rank) {
  WorldOptions options = world;
  options.rank = rank;
  options.size = members.size();
  std::vector<bool> is_guest;
  for (int member = 0; member < members.size(); ++member) is_guest.push_back(world.topology.is_guest(members.world_rank(member)));
  options.topology = Topology(is_guest, world.leaf_limits);
  options.guests = options.topology.guests();
  return options;
}

}  // namespace

GroupEngine::GroupEngine(GroupHost& host, Membership members, int rank)
    : host_(host),
      members_(std::move(members)),
      options_(options_of(host.options(), members_, rank)),
      left_(static_cast<std::size_t>(members_.size())) {
  RINGLET_CHECK(rank >= 0 && rank < members_.size() && members_.world_rank(rank) == host.options().rank);
}

GroupEngine::~GroupEngine() = default;

void GroupEngine::place(const Placement& placement, const AlgorithmLimits& limits) {
  options_.placement = placement;
  options_.limits = limits;
}

std::string_view GroupEngine::links() {
  std::string_view found = "none";
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == options_.rank) continue;
    const std::string_view medium = session(peer).medium();
    if (medium.empty() || medium == found) continue;
    found = found == "none" ? medium : "mixed";
  }
  return found;
}

void GroupEngine::start(std::uint16_t stream_id, CollectiveTask task) {
  if (!host_.failure().ok()) return complete_failed(std::move(task.completion));
  if (options_.size == 1) return complete_alone(std::move(task));
  stream(stream_id).add(std::move(task));
}

void GroupEngine::complete_alone(CollectiveTask task) {
  if (!task.output.empty() && task.output.data() != task.input.data() && !task.input.empty())
    std::memcpy(task.output.data(), task.input.data(), std::min(task.output.size(), task.input.size()));
  if (task.call.divisor != 1.0) options_.kernels->divide(task.call.dtype)(task.output.data(), task.call.elements(), task.call.divisor);
  loop().defer([completion = std::move(task.completion)] { completion({}); });
}

void GroupEngine::complete_failed(Completion completion) {
  loop().defer([completion = std::move(completion), status = host_.failure()] { completion(status); });
}

void GroupEngine::send(std::uint16_t stream_id, MessageTask task) {
  if (!host_.failure().ok()) return complete_failed(std::move(task.completion));
  mailbox(stream_id).send(std::move(task));
}

void GroupEngine::receive(std::uint16_t stream_id, MessageTask task) {
  if (!host_.failure().ok()) return complete_failed(std::move(task.completion));
  mailbox(stream_id).receive(std::move(task));
}

StreamQueue& GroupEngine::stream(std::uint16_t id) {
  if (streams_.size() <= id) streams_.resize(id + std::size_t{1});
  auto& queue = streams_[id];
  if (!queue) queue = std::make_unique<StreamQueue>(id, static_cast<StreamHost&>(*this));
  return *queue;
}

Mailbox& GroupEngine::mailbox(std::uint16_t id) {
  auto& box = mailboxes_[id];
  if (!box) box = std::make_unique<Mailbox>(id, static_cast<StreamHost&>(*this));
  return *box;
}

bool GroupEngine::idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& queue) { return !queue || queue->idle(); }) &&
         std::all_of(mailboxes_.begin(), mailboxes_.end(), [](const auto& entry) { return entry.second->idle(); });
}

PayloadSink* GroupEngine::on_frame(int peer, const FrameHeader& header) {
  if (header.stream >= kMaxStreams) {
    host_.fail(
        {Errc::protocol_error,
         members_.name_of(peer) + " sent a frame of stream " + std::to_string(header.stream) + members_.suffix() + ", which does not exist",
         members_.world_rank(peer)});
    return nullptr;
  }
  if (header.kind == FrameKind::call) return stream(header.stream).on_call(peer, header);
  if (header.kind == FrameKind::data) return stream(header.stream).on_data(peer, header);
  return mailbox(header.stream).on_frame(peer, header);
}

StreamHost::Departure GroupEngine::departure(int peer) const {
  if (host_.has_left_world(members_.world_rank(peer))) return Departure::from_world;
  return left_[static_cast<std::size_t>(peer)] ? Departure::from_group : Departure::none;
}

void GroupEngine::on_left(int peer) {
  left_[static_cast<std::size_t>(peer)] = true;
  tell_departure(peer);
}

void GroupEngine::on_left_world(int peer) { tell_departure(peer); }

void GroupEngine::tell_departure(int peer) {
  for (auto& queue : streams_)
    if (queue && host_.failure().ok()) queue->on_peer_left(peer);
  for (auto& [id, box] : mailboxes_)
    if (host_.failure().ok()) box->on_peer_left(peer);
}

Status GroupEngine::check_messages(Instant now) const {
  Status status;
  for (const auto& [id, box] : mailboxes_)
    if (status.ok()) status = box->check_deadlines(now);
  return status;
}

std::optional<Pending> GroupEngine::overdue(Instant now) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto& queue) { return queue && queue->overdue(now); });
  if (found == streams_.end()) return std::nullopt;
  auto pending = (*found)->pending();
  pending->group = this;
  return pending;
}

void GroupEngine::find_pending(Instant since, std::vector<Pending>& found) {
  const auto look = [&](const auto& part) {
    auto pending = part.pending();
    if (!pending || pending->started > since) return;
    pending->group = this;
    found.push_back(*pending);
  };
  for (const auto& queue : streams_)
    if (queue) look(*queue);
  for (const auto& [id, box] : mailboxes_) look(*box);
}

bool GroupEngine::is_pending(const Pending& pending) const {
  auto found = pending.is_message() ? mailboxes_.at(pending.stream)->pending() : streams_[pending.stream]->pending();
  if (found) found->group = pending.group;
  return found == pending;
}

wire::OperationState GroupEngine::state(const Pending& pending, Instant now) const {
  return pending.is_message() ? mailboxes_.at(pending.stream)->state(pending, now) : streams_[pending.stream]->state(now);
}

void GroupEngine::add_to(wire::RankState& state, Instant now, std::uint32_t stream_id) const {
  const auto add = [&](std::size_t id) {
    if (id < streams_.size() && streams_[id]) streams_[id]->add_to(state, now);
  };
  add(stream_id);
  for (std::size_t id = 0; id < streams_.size(); ++id)
    if (id != stream_id) add(id);
  for (const auto& [id, box] : mailboxes_) box->add_to(state, now);
}

void GroupEngine::answer(std::uint32_t stream_id, wire::RankState& state, Instant now) const {
  add_to(state, now, stream_id);
  if (stream_id >= streams_.size() || !streams_[stream_id]) return;
  state.called = streams_[stream_id]->called();
  state.ended = streams_[stream_id]->ended();
}

void GroupEngine::fail_all(const Status& status) {
  for (auto& queue : streams_)
    if (queue) queue->fail_all(status);
  for (auto& [id, box] : mailboxes_) box->fail_all(status);
}

}  // namespace ringlet
