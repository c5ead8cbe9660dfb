#include "core/engine/early_arrivals.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxEarlyBytes = 64 << 20;
constexpr std::size_t kEarlyFrameBytes = 128;  // what each early frame costs beyond its payload
constexpr std::uint64_t kMaxEarlyOperations = 65'536;

std::size_t bytes_of_counts(const Call& call) { return call.counts.size() * sizeof call.counts[0]; }

}  // namespace

EarlyArrivals::Frame::Frame(EarlyArrivals& arrivals, int from, const FrameHeader& frame_header)
    : owner(arrivals), peer(from), header(frame_header) {
  bytes.reserve(frame_header.payload_bytes);
}

std::size_t EarlyArrivals::Frame::consume(ConstBytes piece) {
  bytes.insert(bytes.end(), piece.begin(), piece.end());
  return piece.size();
}

void EarlyArrivals::Frame::frame_ended() {
  complete = true;
  owner.on_frame_ended_(peer, header.sequence);  // may destroy this
}

void EarlyArrivals::add_call(int peer, std::uint64_t sequence, std::uint64_t ahead, const Call& call) {
  if (ahead > kMaxEarlyOperations) return group_.fail_for(peer, "a call too far ahead: " + group_.operation_name(stream_, sequence));
  Arrivals& arrivals = arrivals_[{sequence, peer}];
  if (arrivals.call) return group_.fail_for(peer, "the same call twice");
  if (bytes_ + bytes_of_counts(call) > kMaxEarlyBytes)
    return group_.fail_for(peer, "more calls than may wait for " + group_.operation_name(stream_, sequence) + " to start here");
  bytes_ += bytes_of_counts(call);
  arrivals.call = call;
}

PayloadSink* EarlyArrivals::add_frame(int peer, const FrameHeader& header) {
  const auto found = arrivals_.find({header.sequence, peer});
  if (found == arrivals_.end() || !found->second.call) {
    group_.fail_for(peer, "data of " + group_.operation_name(stream_, header.sequence) + " before its call");
    return nullptr;
  }
  const std::size_t cost = kEarlyFrameBytes + header.payload_bytes;
  if (bytes_ + cost > kMaxEarlyBytes || header.payload_bytes > group_.options().eager_window_bytes) {
    group_.fail_for(peer, "more data than allowed before " + group_.operation_name(stream_, header.sequence) + " has started here");
    return nullptr;
  }
  bytes_ += cost;
  auto& frames = found->second.frames;
  frames.push_back(std::make_unique<Frame>(*this, peer, header));
  return frames.back().get();
}

std::optional<Call> EarlyArrivals::take_call(int peer, std::uint64_t sequence) {
  const auto found = arrivals_.find({sequence, peer});
  if (found == arrivals_.end()) return std::nullopt;
  std::optional<Call> call = std::exchange(found->second.call, std::nullopt);
  if (call) bytes_ -= bytes_of_counts(*call);
  drop_if_empty(found);
  return call;
}

std::unique_ptr<EarlyArrivals::Frame> EarlyArrivals::take_frame(int peer, std::uint64_t sequence) {
  const auto found = arrivals_.find({sequence, peer});
  if (found == arrivals_.end()) return nullptr;
  auto& frames = found->second.frames;
  if (frames.empty() || !frames.front()->complete) return nullptr;
  std::unique_ptr<Frame> frame = std::move(frames.front());
  frames.pop_front();
  bytes_ -= kEarlyFrameBytes + frame->header.payload_bytes;
  drop_if_empty(found);
  return frame;
}

void EarlyArrivals::drop_if_empty(std::map<Key, Arrivals>::iterator arrivals) {
  if (!arrivals->second.call && arrivals->second.frames.empty()) arrivals_.erase(arrivals);
}

}  // namespace ringlet
