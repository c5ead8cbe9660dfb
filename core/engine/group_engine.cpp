#include "core/engine/group_engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringlet {

GroupEngine::GroupEngine(GroupHost& host, Membership members, int rank) : context_(host, std::move(members), rank) {}

GroupEngine::~GroupEngine() = default;

std::string_view GroupEngine::links() {
  std::string_view found = "none";
  for (int peer = 0; peer < options().size; ++peer) {
    if (peer != options().rank) found = common_name(found, context_.session(peer).medium());
  }
  return found;
}

void GroupEngine::go_on() {
  context_.loop().defer(guard_.wrap([this] {
    for (std::size_t id = 0; id < streams_.size() && context_.failure().ok(); ++id)
      if (streams_[id]) streams_[id]->go_on();
  }));
}

std::vector<std::uint64_t> GroupEngine::unstarted() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& engine : streams_) numbers.push_back(engine ? engine->unstarted() : 0);
  while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
  return numbers;
}

void GroupEngine::start(std::uint16_t stream_id, CollectiveTask task) {
  if (!context_.failure().ok()) return context_.complete(std::move(task.completion), context_.failure());
  if (options().size == 1) return complete_alone(std::move(task));
  stream(stream_id).add(std::move(task));
}

void GroupEngine::complete_alone(CollectiveTask task) {
  if (task.call.keeps_decoded()) {
    const std::size_t numbers = task.call.elements() * block_elements(*task.call.blocks);
    options().kernels->decode (*task.call.blocks)(task.output.data(), task.input.data(), numbers);
    return context_.complete(std::move(task.completion), {});
  }
  if (!task.output.empty() && task.output.data() != task.input.data() && !task.input.empty())
    std::memcpy(task.output.data(), task.input.data(), std::min(task.output.size(), task.input.size()));
  if (task.call.divisor != 1.0) options().kernels->divide(task.call.dtype)(task.output.data(), task.call.elements(), task.call.divisor);
  context_.complete(std::move(task.completion), {});
}

void GroupEngine::send(std::uint16_t stream_id, MessageTask task) {
  if (!context_.failure().ok()) return context_.complete(std::move(task.completion), context_.failure());
  mailbox(stream_id).send(std::move(task));
}

void GroupEngine::receive(std::uint16_t stream_id, MessageTask task) {
  if (!context_.failure().ok()) return context_.complete(std::move(task.completion), context_.failure());
  mailbox(stream_id).receive(std::move(task));
}

StreamEngine& GroupEngine::stream(std::uint16_t id) {
  if (streams_.size() <= id) streams_.resize(id + std::size_t{1});
  auto& engine = streams_[id];
  if (!engine) engine = std::make_unique<StreamEngine>(id, context_);
  return *engine;
}

Mailbox& GroupEngine::mailbox(std::uint16_t id) {
  auto& box = mailboxes_[id];
  if (!box) box = std::make_unique<Mailbox>(id, context_);
  return *box;
}

bool GroupEngine::idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& engine) { return !engine || engine->idle(); }) &&
         std::all_of(mailboxes_.begin(), mailboxes_.end(), [](const auto& entry) { return entry.second->idle(); });
}

EarlyCost GroupEngine::early_at(int peer) const {
  EarlyCost early;
  for (const auto& engine : streams_)
    if (engine) early += engine->early_at(peer);
  return early;
}

PayloadSink* GroupEngine::on_frame(int world_rank, const FrameHeader& header) {
  const int peer = *members().rank_of(world_rank);
  if (header.kind == FrameKind::leave) {
    context_.set_left(peer);
    tell_departure(peer);
    return nullptr;
  }
  const bool is_message = header.kind != FrameKind::call && header.kind != FrameKind::data;
  if (header.stream > kOwnStream && (!is_message || header.stream >= kFirstCreationStream + kCreationTags)) {
    context_.fail_for(peer, "a frame of stream " + std::to_string(header.stream) + members().suffix() + ", which does not exist");
    return nullptr;
  }
  if (header.kind == FrameKind::call) return stream(header.stream).on_call(peer, header);
  if (header.kind == FrameKind::data) return stream(header.stream).on_data(peer, header);
  return mailbox(header.stream).on_frame(peer, header);
}

void GroupEngine::on_left_world(int world_rank) { tell_departure(*members().rank_of(world_rank)); }

void GroupEngine::tell_departure(int peer) {
  for (auto& engine : streams_)
    if (engine && context_.failure().ok()) engine->on_peer_left(peer);
  for (auto& [id, box] : mailboxes_)
    if (context_.failure().ok()) box->on_peer_left(peer);
}

Status GroupEngine::check_messages(Instant now) const {
  Status status;
  for (const auto& [id, box] : mailboxes_)
    if (status.ok()) status = box->check_deadlines(now);
  return status;
}

std::optional<Pending> GroupEngine::overdue(Instant now) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto& engine) { return engine && engine->overdue(now); });
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
  for (const auto& engine : streams_)
    if (engine) look(*engine);
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

void GroupEngine::withdraw() {
  for (auto& engine : streams_)
    if (engine) engine->withdraw();
}

void GroupEngine::fail_all(const Status& status) {
  for (auto& engine : streams_)
    if (engine) engine->fail_all(status);
  for (auto& [id, box] : mailboxes_) box->fail_all(status);
}

}  // namespace ringlet
