#include "core/engine/stream_engine.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

/// Receives the call record of one peer.
class StreamEngine::CallSink final : public GatheringSink {
 public:
  CallSink(StreamEngine& stream, int peer) : stream_(stream), peer_(peer) {}
  void begin(std::uint64_t sequence) {
    GatheringSink::begin();
    sequence_ = sequence;
  }
  void frame_ended() override {
    const auto call = decode_call(gathered());
    if (!call) return stream_.group_.fail_for(peer_, "a call that cannot be read");
    stream_.on_call_decoded(peer_, sequence_, *call);
  }

 private:
  StreamEngine& stream_;
  const int peer_;
  std::uint64_t sequence_ = 0;
};

StreamEngine::StreamEngine(std::uint16_t id, GroupContext& group)
    : id_(id), group_(group), early_(group, id, [this](int peer, std::uint64_t sequence) { on_early_frame_ended(peer, sequence); }) {
  for (int peer = 0; peer < group.options().size; ++peer) {
    lanes_.emplace_back(*this, id, group, plan_, EagerWindow(group.options().eager_window_bytes));
    call_sinks_.push_back(std::make_unique<CallSink>(*this, peer));
  }
}

StreamEngine::~StreamEngine() { withdraw(); }

void StreamEngine::withdraw() {
  for (Lane& part : lanes_) part.withdraw();
}

// --- the order of operations ---

void StreamEngine::add(CollectiveTask task) {
  // A peer can make this rank create a stream, but only its own calls make a history.
  if (history_.empty()) history_.resize(group_.options().eager_window_bytes / EarlyCost::kRecordBytes + 1);
  waiting_.push_back(std::move(task));
  if (!running_ && !start_deferred_) start_next();
}

void StreamEngine::go_on() {
  if (!start_deferred_) start_next();
}

void StreamEngine::start_next() {
  if (running_ || waiting_.empty() || group_.is_held_back()) return;
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = true;
  if (const Trace* trace = usable(group_.options().session.trace)) began_ = trace->now();
  deadline_ = group_.loop().now() + current_.timeout;
  const WorldOptions& options = group_.options();
  const Topology& topology = group_.topology_of(id_, sequence_);
  if (&topology != &options.topology)
    current_.call.algorithm = choose_again(current_.call, options.size, topology, options.limits, options.placement);
  plan_.begin(current_, options, topology);
  start_lanes();
  const std::uint64_t sequence = sequence_;
  take_early();
  for (int peer = 0; peer < group_.options().size && running_ && sequence_ == sequence; ++peer)
    if (group_.departure(peer) != GroupContext::Departure::none) on_peer_left(peer);
}

void StreamEngine::start_lanes() {
  const Call& call = current_.call;
  // All records are made before the first lane starts, because a lane that has started may have lent its record to the link.
  records_.clear();
  std::size_t bytes = 0;
  each_from_next_rank([&](const PeerSteps& steps) {
    if (records_.empty() || is_pairwise(call)) bytes = append_call(call, steps.peer, records_);
  });
  std::size_t offset = 0;
  each_from_next_rank([&](const PeerSteps& steps) {
    lane(steps.peer).start(steps, sequence_, ConstBytes(records_).subspan(offset, bytes));
    if (is_pairwise(call)) offset += bytes;
  });
}

template <class Visit>
void StreamEngine::each_from_next_rank(Visit visit) {
  const auto& peers = plan_.steps().peers;
  const auto next = std::find_if(peers.begin(), peers.end(), [&](const PeerSteps& steps) { return steps.peer > group_.options().rank; });
  std::for_each(next, peers.end(), visit);
  std::for_each(peers.begin(), next, visit);
}

void StreamEngine::advance() {
  for (const Combine* next = plan_.next_combine(); next != nullptr; next = plan_.next_combine()) {
    if (next->after_sends && !sends_have_left()) break;
    if (!plan_.run_next_combine()) break;
  }
  bool complete = plan_.next_combine() == nullptr;
  each_from_next_rank([&](const PeerSteps& steps) {
    Lane& part = lane(steps.peer);
    part.wake_if_sendable();
    complete &= part.done();
  });
  if (complete && running_) finish();
}

bool StreamEngine::sends_have_left() const {
  const auto& peers = plan_.steps().peers;
  return std::all_of(peers.begin(), peers.end(), [&](const PeerSteps& steps) { return lane(steps.peer).sends_left(); });
}

void StreamEngine::finish() {
  for (const PeerSteps& steps : plan_.steps().peers) lane(steps.peer).end();
  record_ended(false);
  history_[sequence_ % history_.size()] = current_.call;
  ended_at_ = group_.loop().now();
  ++sequence_;
  running_ = false;
  group_.complete(std::move(current_.completion), {});
  if (waiting_.empty()) return;
  start_deferred_ = true;
  group_.loop().defer([this, watch = guard_.watch()] {
    if (!watch.alive()) return;
    start_deferred_ = false;
    start_next();
  });
}

void StreamEngine::record_ended(bool failed) {
  Trace* trace = usable(group_.options().session.trace);
  if (trace == nullptr) return;
  if (!track_) track_ = trace->add_track(group_.stream_name(id_));
  const Call& call = current_.call;
  TraceRecord record;
  record.track = *track_;
  record.name = traits_of(call.kind).name;
  record.category = call.purpose == Purpose::gradients ? kBucketCategory : kCollectiveCategory;
  record.begin = began_;
  record.end = trace->now();
  record.failed = failed;
  record.bytes = call.bytes();
  record.number = sequence_;
  record.dtype = call.blocks ? std::string_view("blocks") : name_of(call.dtype);
  record.algorithm = name_of(call.algorithm);
  trace->record(record);
}

void StreamEngine::fail_all(const Status& status) {
  if (running_) record_ended(true);
  if (std::exchange(running_, false)) group_.complete(std::move(current_.completion), status);
  while (!waiting_.empty()) {
    group_.complete(std::move(waiting_.front().completion), status);
    waiting_.pop_front();
  }
}

// --- from peers ---

Lane* StreamEngine::find_lane(int peer) {
  if (!running_) return nullptr;
  Lane& found = lane(peer);
  return found.sequence() == sequence_ ? &found : nullptr;
}

PayloadSink* StreamEngine::on_call(int peer, const FrameHeader& header) {
  if (header.payload_bytes < kCallRecordBytes || header.payload_bytes > max_call_record_bytes(group_.options().size)) {
    group_.fail_for(peer, "a call of " + std::to_string(header.payload_bytes) + " bytes");
    return nullptr;
  }
  CallSink& sink = *call_sinks_[static_cast<std::size_t>(peer)];
  sink.begin(header.sequence);
  return &sink;
}

void StreamEngine::on_call_decoded(int peer, std::uint64_t sequence, const Call& call) {
  if (sequence < sequence_) {
    lane(peer).on_call_of_ended(sequence);
    if (Lane* running = find_lane(peer)) running->wake_if_sendable();
    const std::uint64_t age = sequence_ - sequence;
    if (age <= history_.size()) compare(peer, sequence, call, past_call(sequence));
    return;
  }
  if (sequence > sequence_ || !running_) return early_.add_call(peer, sequence, sequence - sequence_, call);
  if (!agree(current_.call, call, peer)) return compare(peer, sequence, call, current_.call);
  Lane* running = find_lane(peer);
  if (running == nullptr) return;
  if (running->called()) return group_.fail_for(peer, "the same call twice");
  running->on_call();
}

void StreamEngine::compare(int peer, std::uint64_t sequence, const Call& theirs, const Call& ours) {
  if (agree(ours, theirs, peer)) return;
  const int rank = group_.options().rank;
  const auto says = [&](int who, int to, const Call& call) {
    return group_.members().name_of(who) + " called " + describe(call) + (is_pairwise(call) ? " with " + group_.members().name_of(to) : "");
  };
  const Call mine = between(ours, peer);
  // The lower rank is named first, so that both ranks report the same text.
  const std::string text = rank < peer ? says(rank, peer, mine) + ", " + says(peer, rank, theirs) + describe_difference(mine, theirs)
                                       : says(peer, rank, theirs) + ", " + says(rank, peer, mine) + describe_difference(theirs, mine);
  group_.fail(
      {Errc::mismatch, "ranks disagree about " + group_.operation_name(id_, sequence) + ": " + text, group_.members().world_rank(peer)});
}

PayloadSink* StreamEngine::on_data(int peer, const FrameHeader& header) {
  if (header.sequence < sequence_) {
    group_.fail_for(peer, "data of " + group_.operation_name(id_, header.sequence) + ", which has ended");
    return nullptr;
  }
  if (header.sequence > sequence_ || !running_) return early_.add_frame(peer, header);
  Lane* running = find_lane(peer);
  if (running == nullptr) {
    group_.fail_for(peer, "data for " + describe(current_.call) + ", which takes none from this rank");
    return nullptr;
  }
  const Status status = running->begin_frame(header);
  if (status.ok()) return running;
  group_.fail_for(peer, status.text());
  return nullptr;
}

void StreamEngine::take_early() {
  const std::uint64_t sequence = sequence_;
  for (int peer = 0; peer < group_.options().size && running_ && sequence_ == sequence; ++peer) {
    if (const auto call = early_.take_call(peer, sequence)) on_call_decoded(peer, sequence, *call);
    take_early_frames(peer);
  }
}

void StreamEngine::take_early_frames(int peer) {
  const std::uint64_t sequence = sequence_;
  // The operation may end, and the group may fail, at each step.
  while (running_ && sequence_ == sequence) {
    const auto frame = early_.take_frame(peer, sequence);
    if (frame.empty()) return;
    PayloadSink* sink = on_data(peer, frame.front().header);
    if (sink == nullptr) return;
    for (ConstBytes left = frame.front().payload(); !left.empty();) left = left.subspan(sink->consume(left));
    sink->frame_ended();
  }
}

void StreamEngine::on_early_frame_ended(int peer, std::uint64_t sequence) {
  if (sequence < sequence_) return group_.fail_for(peer, "data of " + group_.operation_name(id_, sequence) + ", which has ended");
  // The operation may have started while the frame was coming.
  if (running_ && sequence == sequence_) take_early_frames(peer);
}

void StreamEngine::on_peer_left(int peer) {
  Lane* running = find_lane(peer);
  if (running == nullptr) return;
  if (group_.departure(peer) == GroupContext::Departure::from_world) {
    if (running->finish_without_peer()) return advance();
  } else if (running->called() && running->receives_done()) {
    // The peer has nothing more to send, and what it has still to receive is sent over the link, which stays.
    return;
  }
  group_.fail({Errc::peer_lost,
               group_.members().name_of(peer) + " left the group before " + group_.operation_name(id_, sequence_) + ", " +
                   describe(current_.call) + ", was done",
               group_.members().world_rank(peer)});
}

}  // namespace ringlet
