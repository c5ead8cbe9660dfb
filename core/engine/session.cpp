#include "core/engine/session.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

/// Shorter payloads are read together with the bytes behind them and then copied; others are received directly into their place.
constexpr std::size_t kDirectBytes = 8 << 10;

/// Bytes that a link takes sooner may have gone into its own buffer, without the peer.
constexpr Duration kWaitedForPeer = Duration::milliseconds(20);

DiscardSink discard;

bool is_segment(const FrameHeader& header) { return header.kind == FrameKind::data || header.kind == FrameKind::message; }

}  // namespace

Session::Session(std::unique_ptr<Link> link, EventLoop& loop, SessionOwner& owner, const SessionOptions& options)
    : loop_(loop),
      owner_(&owner),
      link_(std::move(link)),
      batch_bytes_(std::max(options.batch_bytes, link_->wanted_batch_bytes())),
      trace_(options.trace),
      buffer_(options.receive_buffer_bytes) {
  RINGLET_CHECK(options.receive_buffer_bytes >= 4 * kFrameHeaderBytes);
  last_sent_ = last_received_ = last_sign_of_life_ = loop_.now();
  link_->start(*this);
  link_->wake();
}

Session::Session(EventLoop& loop, SessionOwner& owner, int peer) : loop_(loop), owner_(&owner), batch_bytes_(0), peer_(peer) {
  receive_ended_ = true;
}

// The link is destroyed first, because until then the peer may read memory that was lent to it.
Session::~Session() { link_.reset(); }

std::string Session::peer_name() const { return link_ ? link_->peer_name() : "(closed)"; }

std::string Session::own_name() const { return link_ ? link_->own_name() : std::string(); }

std::string_view Session::medium() const { return link_ ? link_->medium() : std::string_view(); }

std::string_view Session::cipher() const { return link_ ? link_->cipher() : std::string_view(); }

// --- sending ---

void Session::mark_ready(FrameSource& source) {
  if (source.queued || !link_) return;
  mark_queued(source);
  link_->wake();
}

void Session::mark_queued(FrameSource& source) {
  if (std::exchange(source.queued, true)) return;
  source.next_queued = nullptr;
  (last_queued_ != nullptr ? last_queued_->next_queued : first_queued_) = &source;
  last_queued_ = &source;
}

FrameSource* Session::take_queued() {
  FrameSource* source = first_queued_;
  first_queued_ = source->next_queued;
  if (first_queued_ == nullptr) last_queued_ = nullptr;
  source->queued = false;
  return source;
}

void Session::withdraw(FrameSource& source) {
  forget_waiting(source);
  if (!std::exchange(source.queued, false)) return;
  FrameSource* before = nullptr;
  for (FrameSource* at = first_queued_; at != &source; at = at->next_queued) before = at;
  (before != nullptr ? before->next_queued : first_queued_) = source.next_queued;
  if (last_queued_ == &source) last_queued_ = before;
}

bool Session::take_early_record(FrameSource& source, const EarlyCost& cost) {
  if (!cost.fits_in(early_.room())) {
    if (!std::exchange(source.waits_for_room, true)) waiting_.push_back(&source);
    wake_waiting();
    return false;
  }
  early_.take(cost);
  wake_waiting();
  return true;
}

void Session::give_back_early(const EarlyCost& cost) {
  early_.give_back(cost);
  to_wake_ = waiting_.size();
  wake_waiting();
}

void Session::forget_waiting(FrameSource& source) {
  if (std::exchange(source.waits_for_room, false)) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &source));
  wake_waiting();
}

// One is woken at a time, since the room may be enough for one alone. When it has taken some, or needs none, or more than there is, the
// next is woken, until each has been that waited when room was given back.
void Session::wake_waiting() {
  if (waiting_.empty() || to_wake_ == 0 || early_.room().record_bytes < EarlyCost::kRecordBytes) return;
  --to_wake_;
  FrameSource& source = *waiting_.front();
  waiting_.pop_front();
  source.waits_for_room = false;
  mark_ready(source);
}

void Session::send_owned(FrameHeader header, ConstBytes payload) {
  if (!link_) return;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  owned_.push_back({header, {payload.begin(), payload.end()}});
  link_->wake();
}

std::span<const ConstBytes> Session::to_send() {
  if (first_part_ == part_count_)
    fill_batch();
  else
    put_owned_ahead();
  return {parts_.data() + first_part_, part_count_ - first_part_};
}

void Session::fill_batch() {
  part_count_ = first_part_ = owned_in_batch_ = 0;
  batch_is_for_caches_ = false;
  using Kind = BatchEntry::Kind;
  if (!raw_.empty()) {
    raw_in_batch_ = std::exchange(raw_, {});
    batch_[0] = {Kind::raw, {}, nullptr, {}};
    parts_[0] = raw_in_batch_;
    parts_[1] = {};
    part_count_ = 2;
  }
  std::size_t bytes = 0;
  const auto room = [&] { return part_count_ < parts_.size() && bytes < batch_bytes_; };
  for (const auto& frame : owned_) {
    if (!room()) break;
    add_to_batch(Kind::owned, frame.header, frame.payload, nullptr);
    ++owned_in_batch_;
    bytes += frame.payload.size();
  }
  while (first_queued_ != nullptr && room()) {
    FrameSource* source = take_queued();
    const auto frame = source->next_frame();
    if (!frame) continue;
    add_to_batch(Kind::source, frame->header, frame->payload, source);
    bytes += frame->payload.size();
    batch_is_for_caches_ = batch_is_for_caches_ || frame->for_caches;
    mark_queued(*source);  // its turn comes again, after the others'
  }
}

void Session::add_to_batch(BatchEntry::Kind kind, const FrameHeader& header, ConstBytes payload, FrameSource* source) {
  put_in_batch(part_count_ / 2, {kind, header, source, trace() != nullptr ? trace()->now() : Instant{}}, payload);
  part_count_ += 2;
}

void Session::put_in_batch(std::size_t index, const BatchEntry& entry, ConstBytes payload) {
  batch_[index] = entry;
  encode(entry.header, headers_[index].data());
  parts_[2 * index] = headers_[index];
  parts_[2 * index + 1] = payload;
}

// On a slow network a batch takes seconds, and heartbeats and answers would wait for all of it.
void Session::put_owned_ahead() {
  if (owned_in_batch_ == owned_.size()) return;
  std::size_t place = first_part_ / 2 + (current_is_untouched() ? 0 : 1);
  while (place < part_count_ / 2 && batch_[place].kind == BatchEntry::Kind::owned) ++place;
  const std::size_t count = std::min(owned_.size() - owned_in_batch_, (parts_.size() - part_count_) / 2);
  for (std::size_t index = part_count_ / 2; index > place; --index)
    put_in_batch(index - 1 + count, batch_[index - 1], parts_[2 * (index - 1) + 1]);
  for (std::size_t index = 0; index < count; ++index) {
    const OwnedFrame& frame = owned_[owned_in_batch_++];
    put_in_batch(place + index, {BatchEntry::Kind::owned, frame.header, nullptr, {}}, frame.payload);
  }
  part_count_ += 2 * count;
}

bool Session::current_is_untouched() const {
  return batch_[first_part_ / 2].kind != BatchEntry::Kind::raw && first_part_ % 2 == 0 && parts_[first_part_].size() == kFrameHeaderBytes;
}

void Session::sent(std::size_t bytes) {
  last_sent_ = loop_.now();
  bytes_sent_ += bytes;
  if (waits_since_ && last_sent_ - *waits_since_ >= kWaitedForPeer) last_sign_of_life_ = last_sent_;
  waits_since_.reset();
  while (first_part_ < part_count_) {
    auto& part = parts_[first_part_];
    const std::size_t taken = std::min(bytes, part.size());
    part = part.subspan(taken);
    bytes -= taken;
    if (!part.empty()) {
      waits_since_ = last_sent_;
      return;
    }
    if (++first_part_ % 2 == 0) entry_left(first_part_ / 2 - 1);
  }
}

void Session::entry_left(std::size_t index) {
  const BatchEntry entry = batch_[index];
  if (entry.kind == BatchEntry::Kind::source) {
    record_segment(traced_sent_, "send", entry.header, entry.since);
    if (entry.source != nullptr) entry.source->frame_sent(entry.header);
  } else if (entry.kind == BatchEntry::Kind::owned) {
    pop_owned();
  }
}

void Session::record_segment(TracedSegments& direction, std::string_view name, const FrameHeader& header, Instant since) {
  if (trace() == nullptr || !is_segment(header)) return;
  if (!direction.track) direction.track = trace_->add_track(std::string(name) + " rank " + std::to_string(peer_));
  TraceRecord record;
  record.track = *direction.track;
  record.name = name;
  record.category = kSegmentCategory;
  record.begin = since;
  record.end = trace_->now();
  // A link takes a batch of frames as one, and the peer may have them before this side is told. So each began when the batch was given.
  record.overlaps = &direction == &traced_sent_;
  record.peer = peer_;
  record.bytes = header.payload_bytes;
  record.number = direction.count++;
  trace_->record(record);
}

void Session::pop_owned() {
  owned_.pop_front();
  --owned_in_batch_;
}

void Session::drop_sources() {
  while (first_queued_ != nullptr) take_queued();
  for (FrameSource* source : std::exchange(waiting_, {})) source->waits_for_room = false;
  for (BatchEntry& entry : batch_) entry.source = nullptr;
  // Where the peer reads this memory itself, the link copies the bytes that it still needs.
  if (const std::size_t kept = link_ ? link_->recall() : 0; kept > 0) sent(kept);
  if (first_part_ == part_count_) return;
  if (!current_is_untouched()) {
    for (std::size_t i = first_part_; i <= (first_part_ | 1); ++i) raw_.insert(raw_.end(), parts_[i].begin(), parts_[i].end());
    if (batch_[first_part_ / 2].kind == BatchEntry::Kind::owned) pop_owned();
  }
  part_count_ = first_part_ = owned_in_batch_ = 0;
}

void Session::finish_sending() {
  if (link_) link_->finish_sending();
}

void Session::close() {
  drop_sources();
  link_.reset();
}

// --- receiving ---

void Session::discard_received() {
  discarding_ = true;
  if (in_frame_) sink_ = &discard;
  direct_ = false;
}

void Session::discard_frame_of(std::uint32_t group) {
  if (header_.group == group) discard_frame_of_operation();
}

void Session::discard_frame_of_operation() {
  if (!in_frame_ || !is_of_operation(header_.kind)) return;
  sink_ = &discard;
  direct_ = false;
}

std::span<const Bytes> Session::to_receive() {
  std::size_t count = 0;
  direct_ = false;
  if (in_frame_ && begin_ == end_ && payload_left_ >= kDirectBytes) {
    const Bytes place = sink_->direct();
    if (!place.empty()) {
      direct_ = true;
      receive_parts_[count++] = place.first(std::min(place.size(), payload_left_));
      // Only the next header is read along, because the payload behind it may have a place of its own.
      begin_ = end_ = 0;
      if (receive_parts_[0].size() == payload_left_) receive_parts_[count++] = Bytes(buffer_).first(kFrameHeaderBytes);
      return {receive_parts_.data(), count};
    }
  }
  if (begin_ == end_) begin_ = end_ = 0;
  // The rest is part of a header or of an element. It is moved to the front when space runs short.
  if (buffer_.size() - end_ < buffer_.size() / 2 && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  Bytes space = Bytes(buffer_).subspan(end_);
  // Behind a long payload, too: that of the next frame may be long as well.
  if (header_.payload_bytes >= kDirectBytes)
    space = space.first(std::min(space.size(), (in_frame_ ? payload_left_ : 0) + kFrameHeaderBytes - (end_ - begin_)));
  receive_parts_[count++] = space;
  return {receive_parts_.data(), count};
}

void Session::received(std::size_t bytes) {
  last_received_ = last_sign_of_life_ = loop_.now();
  bytes_received_ += bytes;
  if (direct_) {
    direct_ = false;
    const std::size_t placed = std::min(bytes, receive_parts_[0].size());
    bytes -= placed;
    payload_left_ -= placed;
    sink_->received_direct(placed);
    if (!link_) return;
    if (payload_left_ == 0) end_frame();
  }
  end_ += bytes;
  parse();
}

void Session::parse() {
  while (link_) {
    if (!in_frame_) {
      if (!parse_header()) return;
    } else if (!take_payload()) {
      return;
    }
  }
}

bool Session::parse_header() {
  if (end_ - begin_ < kFrameHeaderBytes) return false;
  const Status status = decode(buffer_.data() + begin_, header_);
  if (!status.ok()) {
    fail(status);
    return false;
  }
  begin_ += kFrameHeaderBytes;
  payload_left_ = header_.payload_bytes;
  if (header_.kind == FrameKind::goodbye) goodbye_received_ = true;
  sink_ = discarding_ || header_.kind == FrameKind::heartbeat ? &discard : owner_->on_frame(*this, header_);
  if (!link_) return false;
  if (sink_ == nullptr || discarding_) sink_ = &discard;
  in_frame_ = true;
  if (trace() != nullptr) receiving_since_ = trace_->now();
  if (payload_left_ == 0) end_frame();
  return true;
}

bool Session::take_payload() {
  const std::size_t available = std::min(payload_left_, end_ - begin_);
  if (available == 0) return false;
  const std::size_t taken = sink_->consume({buffer_.data() + begin_, available});
  if (!link_) return false;
  begin_ += taken;
  payload_left_ -= taken;
  if (payload_left_ == 0) {
    end_frame();
    return link_ != nullptr;
  }
  return taken == available ? begin_ != end_ : taken > 0;
}

void Session::end_frame() {
  in_frame_ = false;
  record_segment(traced_received_, "receive", header_, receiving_since_);
  PayloadSink* sink = std::exchange(sink_, nullptr);
  sink->frame_ended();
}

void Session::receive_ended() {
  receive_ended_ = true;
  if (goodbye_received_ || discarding_) return owner_->on_session_ended(*this);
  // Nothing that is sent to a peer which ended without a goodbye would be read.
  link_failed(
      {Errc::peer_lost, in_frame_ ? "the connection ended in the middle of a frame" : "the connection ended without a goodbye", peer_});
}

void Session::link_failed(const Status& status) {
  receive_ended_ = true;
  link_.reset();
  if (goodbye_received_ || discarding_) return owner_->on_session_ended(*this);
  owner_->on_session_failed(*this, {status.code(), status.text(), peer_});
}

void Session::fail(const Status& status) {
  discard_received();
  owner_->on_session_failed(*this, {status.code(), status.text(), peer_});
}

}  // namespace ringlet
