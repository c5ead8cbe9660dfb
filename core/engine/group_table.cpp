#include "core/engine/group_table.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

/// A RankState message lists at most this many running operations.
constexpr std::size_t kToldOperations = 8;

}  // namespace

GroupTable::GroupTable(GroupHost& host, std::size_t limit) : host_(host), limit_(limit) {}

std::optional<std::uint32_t> GroupTable::reserve() {
  if (free_.empty()) {
    if (slots_.size() >= limit_) return std::nullopt;
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  slots_[id].serial = ++reserved_;
  return id;
}

void GroupTable::release(std::uint32_t id) { free_.push_back(id); }

GroupEngine& GroupTable::create(std::uint32_t id, Membership members, int rank) {
  Slot& slot = slots_[id];
  RINGLET_CHECK(!slot.group && slot.awaited.empty() && members.group_id(rank) == id);
  slot.group = std::make_unique<GroupEngine>(host_, std::move(members), rank);
  return *slot.group;
}

void GroupTable::leave(GroupEngine& group) {
  RINGLET_CHECK(group.idle());
  const std::uint32_t id = group.id();
  FrameHeader leave;
  leave.kind = FrameKind::leave;
  for (int rank = 0; rank < group.members().size() && host_.failure().ok(); ++rank) {
    const int peer = group.members().world_rank(rank);
    if (rank == group.options().rank || host_.has_left_world(peer)) continue;
    Session& session = host_.session_with(peer);
    session.discard_frame_of(id);
    // A member that has left already waits for this frame before it uses its number of the group again.
    leave.group = group.members().group_id(rank);
    session.send_owned(leave, {});
    const EarlyCost early = group.early_at(rank);
    if (group.has_left(rank))
      session.give_back_early(early);
    else
      slots_[id].awaited.push_back({peer, early});
  }
  if (group.has_use_of_speeds() && !slots_[id].awaited.empty()) slots_[id].left_at = {group.members().key(), group.unstarted()};
  drop(id);
}

void GroupTable::discard(GroupEngine& group) { drop(group.id()); }

void GroupTable::drop(std::uint32_t id) {
  const Instant now = host_.loop().now();
  past_ = past(now);
  past_at_ = now;
  slots_[id].group->add_to(past_, now);
  past_.running.clear();
  slots_[id].group.reset();
  if (slots_[id].awaited.empty()) free_.push_back(id);
}

GroupEngine* GroupTable::find(int peer, std::uint32_t id) const {
  GroupEngine* group = id < slots_.size() ? slots_[id].group.get() : nullptr;
  if (group == nullptr) return nullptr;
  const auto rank = group->members().rank_of(peer);
  return rank && !group->has_left(*rank) ? group : nullptr;
}

void GroupTable::on_late_frame(int peer, const FrameHeader& header) {
  const auto is_of = [peer](const Awaited& one) { return one.peer == peer; };
  const bool awaited =
      header.group < slots_.size() && std::any_of(slots_[header.group].awaited.begin(), slots_[header.group].awaited.end(), is_of);
  if (awaited && header.kind == FrameKind::leave) return forget_member(header.group, peer);
  if (awaited) return;
  host_.on_violation(peer,
                     "rank " + std::to_string(peer) + " sent a frame of group " + std::to_string(header.group) + ", which it is not in");
}

void GroupTable::forget_member(std::uint32_t id, int peer) {
  Slot& slot = slots_[id];
  const auto found = std::find_if(slot.awaited.begin(), slot.awaited.end(), [peer](const Awaited& one) { return one.peer == peer; });
  if (found == slot.awaited.end()) return;
  host_.session_with(peer).give_back_early(found->early);
  slot.awaited.erase(found);
  if (!slot.awaited.empty()) return;
  slot.left_at = {};
  free_.push_back(id);
}

void GroupTable::on_left_world(int peer) {
  for (std::uint32_t id = 0; id < slots_.size(); ++id) {
    forget_member(id, peer);
    GroupEngine* group = slots_[id].group.get();
    if (group != nullptr && group->members().rank_of(peer)) group->on_left_world(peer);
  }
}

std::vector<wire::GroupNumbers> GroupTable::unstarted() const {
  std::vector<wire::GroupNumbers> told;
  for (const Slot& slot : slots_) {
    if (slot.group && slot.group->has_use_of_speeds()) told.push_back({slot.group->members().key(), slot.group->unstarted()});
    if (!slot.group) told.push_back(slot.left_at);
    if (!told.empty() && told.back().numbers.empty()) told.pop_back();
  }
  return told;
}

bool GroupTable::idle() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.group || slot.group->idle(); });
}

void GroupTable::withdraw() {
  for (Slot& slot : slots_)
    if (slot.group) slot.group->withdraw();
}

bool GroupTable::empty() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.group; });
}

Status GroupTable::check_messages(Instant now) const {
  Status status;
  for (const Slot& slot : slots_)
    if (slot.group && status.ok()) status = slot.group->check_messages(now);
  return status;
}

std::optional<Pending> GroupTable::overdue(Instant now) const {
  for (const Slot& slot : slots_)
    if (const auto overdue = slot.group ? slot.group->overdue(now) : std::nullopt) return overdue;
  return std::nullopt;
}

wire::RankState GroupTable::past(Instant now) const {
  wire::RankState state = past_;
  if (!state.last.call.empty()) state.last.milliseconds += static_cast<std::uint64_t>((now - past_at_).whole_milliseconds());
  return state;
}

wire::RankState GroupTable::state(int peer, const wire::StateQuestion& question) const {
  const Instant now = host_.loop().now();
  wire::RankState state = past(now);
  state.number = question.number;
  const GroupEngine* asked = question.about_stream && question.group < slots_.size() ? slots_[question.group].group.get() : nullptr;
  if (asked != nullptr && !asked->members().rank_of(peer)) asked = nullptr;
  if (asked != nullptr) asked->answer(question.stream, state, now);
  for (const Slot& slot : slots_)
    if (slot.group && slot.group.get() != asked) slot.group->add_to(state, now);
  if (state.running.size() > kToldOperations) state.running.resize(kToldOperations);
  return state;
}

void GroupTable::find_pending(Instant since, std::vector<Pending>& found) const {
  for (const Slot& slot : slots_)
    if (slot.group) slot.group->find_pending(since, found);
}

void GroupTable::fail_all(const Status& status) {
  for (Slot& slot : slots_)
    if (slot.group) slot.group->fail_all(status);
}

}  // namespace ringlet
