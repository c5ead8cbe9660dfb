#include "core/engine/stream_queue.hpp"

#include <cstring>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

std::size_t counts_bytes(const Call& call) { return call.counts.size() * sizeof call.counts[0]; }

}  // namespace

/// Takes a call record.
class StreamQueue::CallSink final : public GatheringSink {
 public:
  CallSink(StreamQueue& queue, int peer) : queue_(queue), peer_(peer) {}
  void begin(std::uint64_t sequence) {
    GatheringSink::begin();
    sequence_ = sequence;
  }
  void frame_ended() override {
    const auto call = decode_call(gathered());
    if (!call) return queue_.group_.fail_for(peer_, "a call that cannot be read");
    queue_.on_call_decoded(peer_, sequence_, *call);
  }

 private:
  StreamQueue& queue_;
  const int peer_;
  std::uint64_t sequence_ = 0;
};

/// A data frame of an operation that has not started here.
struct StreamQueue::EarlyFrame final : BufferedSink {
  EarlyFrame(StreamQueue& owner, int from, const FrameHeader& frame_header) : queue(owner), peer(from), header(frame_header) {
    bytes.reserve(frame_header.payload_bytes);
  }
  std::size_t consume(ConstBytes piece) override {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return piece.size();
  }
  void frame_ended() override {
    complete = true;
    queue.early_frame_ended(peer, *this);
  }

  StreamQueue& queue;
  const int peer;
  const FrameHeader header;
  std::vector<std::byte> bytes;
  bool complete = false;
};

StreamQueue::StreamQueue(std::uint16_t id, GroupContext& group)
    : id_(id),
      group_(group),
      collective_(group, [this] { on_finished(); }),
      history_(group.options().eager_window_bytes / EagerWindow::kOperationBytes + 1) {
  for (int peer = 0; peer < group.options().size; ++peer) call_sinks_.push_back(std::make_unique<CallSink>(*this, peer));
}

StreamQueue::~StreamQueue() { *alive_ = false; }

std::string StreamQueue::operation_name(std::uint64_t sequence) const {
  return "operation " + std::to_string(sequence) + " of stream " + std::to_string(id_) + group_.members().suffix();
}

void StreamQueue::add(CollectiveTask task) {
  waiting_.push_back(std::move(task));
  if (!running_ && !start_deferred_) start_next();
}

void StreamQueue::start_next() {
  if (running_ || waiting_.empty()) return;
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = true;
  deadline_ = group_.loop().now() + current_.timeout;
  collective_.start(id_, sequence_, current_);
  const std::uint64_t sequence = sequence_;
  take_early();
  for (int peer = 0; peer < group_.options().size && running_ && sequence_ == sequence; ++peer)
    if (group_.departure(peer) != GroupContext::Departure::none) on_peer_left(peer);
}

void StreamQueue::take_early() {
  const std::uint64_t sequence = sequence_;
  // The operation may end, and the group may fail, at each step.
  const auto still_running = [&] { return running_ && sequence_ == sequence; };
  for (int peer = 0; peer < group_.options().size && still_running(); ++peer) {
    auto node = early_.extract({sequence, peer});
    if (node.empty()) continue;
    Early& early = node.mapped();
    if (early.call) {
      early_bytes_ -= counts_bytes(*early.call);
      on_call_decoded(peer, sequence, *std::exchange(early.call, std::nullopt));
    }
    while (still_running() && !early.frames.empty() && early.frames.front()->complete) {
      const std::unique_ptr<EarlyFrame> frame = std::move(early.frames.front());
      early.frames.pop_front();
      early_bytes_ -= kEarlyFrameBytes + frame->header.payload_bytes;
      const Status status = collective_.on_early_data(peer, frame->header, frame->bytes);
      if (!status.ok()) group_.fail_for(peer, status.text());
    }
    // The rest of a frame may still be coming; early_frame_ended() delivers it.
    if (!early.frames.empty()) early_.insert(std::move(node));
  }
}

PayloadSink* StreamQueue::on_call(int peer, const FrameHeader& header) {
  if (header.payload_bytes < kCallRecordBytes || header.payload_bytes > max_call_record_bytes(group_.options().size)) {
    group_.fail_for(peer, "a call of " + std::to_string(header.payload_bytes) + " bytes");
    return nullptr;
  }
  CallSink& sink = *call_sinks_[static_cast<std::size_t>(peer)];
  sink.begin(header.sequence);
  return &sink;
}

void StreamQueue::on_call_decoded(int peer, std::uint64_t sequence, const Call& call) {
  if (sequence < sequence_) {
    collective_.on_call_of_ended(peer, sequence);
    const std::uint64_t age = sequence_ - sequence;
    if (age <= history_.size()) compare(peer, sequence, call, history_[sequence % history_.size()]);
    return;
  }
  if (sequence == sequence_ && running_) {
    if (!agree(current_.call, call, peer)) return compare(peer, sequence, call, current_.call);
    if (collective_.has_called(peer)) return group_.fail_for(peer, "the same call twice");
    collective_.on_call(peer);
    return;
  }
  if (sequence - sequence_ > kMaxEarlyOperations) return group_.fail_for(peer, "a call too far ahead: " + operation_name(sequence));
  Early& early = early_[{sequence, peer}];
  if (early.call) return group_.fail_for(peer, "the same call twice");
  if (early_bytes_ + counts_bytes(call) > kMaxEarlyBytes)
    return group_.fail_for(peer, "more calls than may wait for " + operation_name(sequence) + " to start here");
  early_bytes_ += counts_bytes(call);
  early.call = call;
}

void StreamQueue::compare(int peer, std::uint64_t sequence, const Call& theirs, const Call& ours) {
  if (agree(ours, theirs, peer)) return;
  const int rank = group_.options().rank;
  const auto says = [&](int who, int to, const Call& call) {
    return group_.members().name_of(who) + " called " + describe(call) + (is_pairwise(call) ? " with " + group_.members().name_of(to) : "");
  };
  const Call mine = between(ours, peer);
  // The lower rank first, so that all say the same.
  const std::string text = rank < peer ? says(rank, peer, mine) + ", " + says(peer, rank, theirs) + describe_difference(mine, theirs)
                                       : says(peer, rank, theirs) + ", " + says(rank, peer, mine) + describe_difference(theirs, mine);
  group_.fail({Errc::mismatch, "ranks disagree about " + operation_name(sequence) + ": " + text, group_.members().world_rank(peer)});
}

PayloadSink* StreamQueue::on_data(int peer, const FrameHeader& header) {
  if (header.sequence == sequence_ && running_) {
    auto sink = collective_.on_data(peer, header);
    if (sink.ok()) return sink.value();
    group_.fail_for(peer, sink.status().text());
    return nullptr;
  }
  if (header.sequence < sequence_) {
    group_.fail_for(peer, "data of " + operation_name(header.sequence) + ", which has ended");
    return nullptr;
  }
  const auto it = early_.find({header.sequence, peer});
  if (it == early_.end() || !it->second.call) {
    group_.fail_for(peer, "data of " + operation_name(header.sequence) + " before its call");
    return nullptr;
  }
  if (early_bytes_ + kEarlyFrameBytes + header.payload_bytes > kMaxEarlyBytes ||
      header.payload_bytes > group_.options().eager_window_bytes) {
    group_.fail_for(peer, "more data than allowed before " + operation_name(header.sequence) + " has started here");
    return nullptr;
  }
  auto& frames = it->second.frames;
  frames.push_back(std::make_unique<EarlyFrame>(*this, peer, header));
  early_bytes_ += kEarlyFrameBytes + header.payload_bytes;
  return frames.back().get();
}

void StreamQueue::early_frame_ended(int peer, EarlyFrame& frame) {
  const std::uint64_t sequence = frame.header.sequence;
  if (sequence < sequence_) return group_.fail_for(peer, "data of " + operation_name(sequence) + ", which has ended");
  if (!running_ || sequence != sequence_) return;
  // The operation started while this frame was coming.
  const auto it = early_.find({sequence, peer});
  RINGLET_CHECK(it != early_.end() && it->second.frames.size() == 1 && it->second.frames.front().get() == &frame);
  const std::unique_ptr<EarlyFrame> owned = std::move(it->second.frames.front());
  early_.erase(it);
  early_bytes_ -= kEarlyFrameBytes + owned->header.payload_bytes;
  const Status status = collective_.on_early_data(peer, owned->header, owned->bytes);
  if (!status.ok()) group_.fail_for(peer, status.text());
}

void StreamQueue::on_peer_left(int peer) {
  if (!running_) return;
  const bool done_with_it =
      group_.departure(peer) == GroupContext::Departure::from_world ? collective_.on_peer_left_world(peer) : collective_.has_all_of(peer);
  if (done_with_it) return;
  group_.fail({Errc::peer_lost,
               group_.members().name_of(peer) + " left the group before " + operation_name(sequence_) + ", " + describe(current_.call) +
                   ", was done",
               group_.members().world_rank(peer)});
}

Status StreamQueue::timeout(int late, const std::string& what_it_does) const {
  const Membership& members = group_.members();
  const std::string text = operation_name(sequence_) + ", " + describe(current_.call) + ", was not done after " +
                           std::to_string(current_.timeout.whole_milliseconds()) + " ms: " + collective_.waiting_for();
  const int awaited = collective_.waits_for();
  if (late < 0 || (late == awaited && !collective_.may_wait_itself(awaited)))
    return {Errc::timed_out, text, awaited < 0 ? -1 : members.world_rank(awaited)};
  return {Errc::timed_out, text + "; " + members.name_of(late) + " " + what_it_does, members.world_rank(late)};
}

void StreamQueue::on_finished() {
  history_[sequence_ % history_.size()] = current_.call;
  ended_at_ = group_.loop().now();
  ++sequence_;
  running_ = false;
  group_.complete(std::move(current_.completion), {});
  if (waiting_.empty()) return;
  start_deferred_ = true;
  group_.loop().defer([this, alive = alive_] {
    if (!*alive) return;
    start_deferred_ = false;
    start_next();
  });
}

void StreamQueue::fail_all(const Status& status) {
  collective_.cancel();
  if (std::exchange(running_, false)) group_.complete(std::move(current_.completion), status);
  while (!waiting_.empty()) {
    group_.complete(std::move(waiting_.front().completion), status);
    waiting_.pop_front();
  }
}

}  // namespace ringlet
