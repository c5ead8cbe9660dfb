#include "core/engine/early_arrivals.hpp"

#include <algorithm>

namespace ringlet {

namespace {

constexpr std::uint64_t kMaxEarlyOperations = 65'536;
/// Memory from this size on is used again, since new memory is filled with zeros first, which costs as much as to copy the bytes.
constexpr std::size_t kLeastSpareBytes = 4 << 10;

EarlyCost cost_of(const Call& call) { return {0, EarlyCost::kRecordBytes + call.counts.size() * sizeof call.counts[0]}; }
EarlyCost cost_of(const FrameHeader& data) { return {data.payload_bytes, EarlyCost::kFrameBytes}; }

}  // namespace

EarlyArrivals::Frame::Frame(EarlyArrivals& arrivals, int from, const FrameHeader& frame_header)
    : owner(arrivals), peer(from), header(frame_header), memory(arrivals.take_memory(frame_header.payload_bytes)) {}

EarlyArrivals::Frame::~Frame() {
  owner.group_.session(peer).release_early(cost_of(header));
  owner.keep_memory(std::move(memory));
}

std::size_t EarlyArrivals::Frame::consume(ConstBytes piece) {
  std::copy(piece.begin(), piece.end(), direct().begin());
  filled += piece.size();
  return piece.size();
}

void EarlyArrivals::Frame::frame_ended() {
  complete = true;
  owner.on_frame_ended_(peer, header.sequence);  // may destroy this
}

EarlyArrivals::~EarlyArrivals() {
  for (const auto& [key, arrivals] : arrivals_)
    if (arrivals.call) group_.session(key.second).release_early(cost_of(*arrivals.call));
}

void EarlyArrivals::add_call(int peer, std::uint64_t sequence, std::uint64_t ahead, const Call& call) {
  if (ahead > kMaxEarlyOperations) return group_.fail_for(peer, "a call too far ahead: " + group_.operation_name(stream_, sequence));
  Arrivals& arrivals = arrivals_[{sequence, peer}];
  if (arrivals.call) return group_.fail_for(peer, "the same call twice");
  if (!group_.session(peer).keep_early(cost_of(call)))
    return group_.fail_for(peer, "more calls than may wait for " + group_.operation_name(stream_, sequence) + " to start here");
  arrivals.call = call;
}

PayloadSink* EarlyArrivals::add_frame(int peer, const FrameHeader& header) {
  const auto found = arrivals_.find({header.sequence, peer});
  if (found == arrivals_.end() || !found->second.call) {
    group_.fail_for(peer, "data of " + group_.operation_name(stream_, header.sequence) + " before its call");
    return nullptr;
  }
  if (header.payload_bytes > group_.options().eager_window_bytes || !group_.session(peer).keep_early(cost_of(header))) {
    group_.fail_for(peer, "more data than allowed before " + group_.operation_name(stream_, header.sequence) + " has started here");
    return nullptr;
  }
  return &found->second.frames.emplace_back(*this, peer, header);
}

std::optional<Call> EarlyArrivals::take_call(int peer, std::uint64_t sequence) {
  const auto found = arrivals_.find({sequence, peer});
  if (found == arrivals_.end()) return std::nullopt;
  std::optional<Call> call = std::exchange(found->second.call, std::nullopt);
  if (call) group_.session(peer).release_early(cost_of(*call));
  drop_if_empty(found);
  return call;
}

std::list<EarlyArrivals::Frame> EarlyArrivals::take_frame(int peer, std::uint64_t sequence) {
  std::list<Frame> taken;
  const auto found = arrivals_.find({sequence, peer});
  if (found == arrivals_.end()) return taken;
  auto& frames = found->second.frames;
  if (frames.empty() || !frames.front().complete) return taken;
  taken.splice(taken.begin(), frames, frames.begin());
  drop_if_empty(found);
  return taken;
}

std::vector<std::byte> EarlyArrivals::take_memory(std::size_t bytes) {
  if (bytes < kLeastSpareBytes) return std::vector<std::byte>(bytes);
  const auto fits = std::find_if(spare_.begin(), spare_.end(), [bytes](const auto& memory) { return memory.size() >= bytes; });
  return fits != spare_.end() ? std::exchange(*fits, {}) : std::vector<std::byte>(bytes);
}

void EarlyArrivals::keep_memory(std::vector<std::byte> memory) noexcept {
  if (memory.size() < kLeastSpareBytes) return;
  const auto smallest =
      std::min_element(spare_.begin(), spare_.end(), [](const auto& one, const auto& other) { return one.size() < other.size(); });
  if (smallest->size() < memory.size()) smallest->swap(memory);
}

void EarlyArrivals::drop_if_empty(std::map<Key, Arrivals>::iterator arrivals) {
  if (!arrivals->second.call && arrivals->second.frames.empty()) arrivals_.erase(arrivals);
}

}  // namespace ringlet
