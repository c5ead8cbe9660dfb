#include "core/engine/mailbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

/// A message on its way out.
class Mailbox::Outgoing final : public FrameSource {
 public:
  Outgoing(Mailbox& box, std::uint64_t sequence, MessageTask task)
      : task_(std::move(task)),
        box_(box),
        sequence_(sequence),
        record_(encode_message_shape(task_.shape)),
        deadline_(box.group_.loop().now() + task_.timeout) {
    auto& outstanding = peer_box().eager_outstanding;
    const std::size_t bytes = task_.source.size();
    if (bytes <= box.group_.options().eager_bytes && outstanding + bytes <= kEagerWindowBytes) {
      eager_ = true;
      outstanding += bytes;
    }
  }

  std::optional<OutgoingFrame> next_frame() override {
    FrameHeader header;
    header.group = box_.group_.members().group_id(task_.peer);
    header.stream = box_.stream_;
    header.sequence = sequence_;
    if (!offered_) {
      offered_ = true;
      ++frames_out_;
      header.kind = FrameKind::offer;
      header.flags = eager_ ? kFlagEager : std::uint8_t{0};
      header.payload_bytes = static_cast<std::uint32_t>(record_.size);
      return OutgoingFrame{header, ConstBytes(record_.bytes).first(record_.size)};
    }
    if (offset_ == task_.source.size() || !(eager_ || accepted_)) return std::nullopt;
    const std::size_t bytes = std::min(task_.source.size() - offset_, box_.group_.options().segment_bytes);
    header.kind = FrameKind::message;
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    header.offset = offset_;
    offset_ += bytes;
    ++frames_out_;
    return OutgoingFrame{header, task_.source.subspan(static_cast<std::size_t>(header.offset), bytes)};
  }

  void frame_sent(const FrameHeader&) override {
    --frames_out_;
    finish_if_done();
  }

  void on_accept() {
    accepted_ = true;
    settle();
    box_.group_.session(task_.peer).mark_ready(*this);
    finish_if_done();
  }

  /// The receiver wants another message. Ends once the bytes that are on their way have left.
  void on_refuse(Status status) {
    refused_ = true;
    outcome_ = std::move(status);
    settle();
    finish_if_done();
  }

  bool awaits_answer() const { return offered_ && !accepted_ && !refused_; }
  bool answered() const { return accepted_ || refused_; }
  bool refused() const { return refused_; }
  const Status& outcome() const { return outcome_; }
  Instant deadline() const { return deadline_; }
  Instant started() const { return {deadline_.nanoseconds - task_.timeout.nanoseconds}; }
  std::size_t bytes_done() const { return offset_; }
  const MessageTask& task() const { return task_; }
  Completion take_completion() { return std::move(task_.completion); }

 private:
  Box& peer_box() { return box_.boxes_[static_cast<std::size_t>(task_.peer)]; }
  void settle() {
    if (eager_) peer_box().eager_outstanding -= task_.source.size();
  }
  void finish_if_done() {
    const bool all_out = offered_ && frames_out_ == 0 && (offset_ == task_.source.size() || (refused_ && !eager_));
    if (!all_out || !(accepted_ || refused_)) return;
    box_.group_.session(task_.peer).withdraw(*this);
    box_.finish(peer_box().outgoing, sequence_, outcome_);  // destroys this
  }

  MessageTask task_;
  Mailbox& box_;
  const std::uint64_t sequence_;
  const MessageShapeRecord record_;
  const Instant deadline_;
  Status outcome_;
  bool eager_ = false;
  bool offered_ = false;
  bool accepted_ = false;
  bool refused_ = false;
  std::size_t offset_ = 0;
  std::uint32_t frames_out_ = 0;
};

/// A posted receive.
class Mailbox::Incoming final : public PayloadSink {
 public:
  Incoming(Mailbox& box, std::uint64_t sequence, MessageTask task)
      : task_(std::move(task)), box_(box), sequence_(sequence), deadline_(box.group_.loop().now() + task_.timeout) {}

  Status begin_frame(const FrameHeader& header) const {
    if (!matched_) return {Errc::protocol_error, "bytes of a message that was not accepted"};
    if (header.offset != offset_ || header.payload_bytes > task_.destination.size() - offset_ || header.payload_bytes == 0)
      return {Errc::protocol_error, "bytes " + std::to_string(header.offset) + "+" + std::to_string(header.payload_bytes) +
                                        " of a message of " + std::to_string(task_.destination.size()) + " bytes where byte " +
                                        std::to_string(offset_) + " is due"};
    return {};
  }
  void take(ConstBytes bytes) {
    if (!bytes.empty()) std::memcpy(task_.destination.data() + offset_, bytes.data(), bytes.size());
    offset_ += bytes.size();
  }
  void finish_if_done() {
    if (matched_ && offset_ == task_.destination.size())
      box_.finish(box_.boxes_[static_cast<std::size_t>(task_.peer)].incoming, sequence_, {});  // destroys this
  }

  Bytes direct() override { return task_.destination.subspan(offset_); }
  void received_direct(std::size_t count) override { offset_ += count; }
  std::size_t consume(ConstBytes bytes) override {
    take(bytes);
    return bytes.size();
  }
  void frame_ended() override { finish_if_done(); }

  void set_matched() { matched_ = true; }
  bool matched() const { return matched_; }
  Instant deadline() const { return deadline_; }
  Instant started() const { return {deadline_.nanoseconds - task_.timeout.nanoseconds}; }
  std::size_t bytes_done() const { return offset_; }
  const MessageTask& task() const { return task_; }
  Completion take_completion() { return std::move(task_.completion); }

 private:
  MessageTask task_;
  Mailbox& box_;
  const std::uint64_t sequence_;
  const Instant deadline_;
  bool matched_ = false;
  std::size_t offset_ = 0;
};

/// An offered message that no receive waits for yet, or whose refused bytes are still coming.
class Mailbox::EarlyMessage final : public BufferedSink {
 public:
  EarlyMessage(Mailbox& box, int peer, std::uint64_t sequence, const MessageShape& shape, bool eager)
      : shape_(shape), eager_(eager), box_(box), peer_(peer), sequence_(sequence) {}

  Status begin_frame(const FrameHeader& header) {
    if (!eager_ || header.offset != received_ || header.payload_bytes == 0 || header.payload_bytes > shape_.bytes() - received_)
      return {Errc::protocol_error, "bytes of a message that was not accepted"};
    auto& held = box_.boxes_[static_cast<std::size_t>(peer_)].early_bytes;
    if (!refused_ && held + header.payload_bytes > kEagerWindowBytes)
      return {Errc::protocol_error, "more bytes of messages than allowed before they are received"};
    if (!refused_) {
      held += header.payload_bytes;
      held_ += header.payload_bytes;
    }
    in_frame_ = true;
    return {};
  }
  std::size_t consume(ConstBytes bytes) override {
    received_ += bytes.size();
    if (!refused_) bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return bytes.size();
  }
  void frame_ended() override {
    in_frame_ = false;
    Box& box = box_.boxes_[static_cast<std::size_t>(peer_)];
    if (refused_) {
      if (received_ == shape_.bytes()) box.early.erase(sequence_);  // destroys this
      return;
    }
    if (box.incoming.count(sequence_) != 0) box_.match(peer_, sequence_);
  }

  /// Throws the bytes away, those to come too; true if none are to come.
  bool refuse() {
    refused_ = true;
    bytes_ = {};
    release();
    return !eager_ || received_ == shape_.bytes();
  }
  /// Its bytes no longer count as held.
  void release() { box_.boxes_[static_cast<std::size_t>(peer_)].early_bytes -= std::exchange(held_, 0); }
  const MessageShape& shape() const { return shape_; }
  bool in_frame() const { return in_frame_; }
  ConstBytes bytes() const { return bytes_; }

 private:
  const MessageShape shape_;
  const bool eager_;
  Mailbox& box_;
  const int peer_;
  const std::uint64_t sequence_;
  std::vector<std::byte> bytes_;
  std::size_t received_ = 0;
  std::size_t held_ = 0;
  bool in_frame_ = false;  // the session holds a pointer to this
  bool refused_ = false;
};

/// Takes the record of an offer or a refusal.
class Mailbox::RecordSink final : public GatheringSink {
 public:
  RecordSink(Mailbox& box, int peer) : box_(box), peer_(peer) {}
  void begin(const FrameHeader& header) {
    GatheringSink::begin();
    header_ = header;
  }
  void frame_ended() override {
    const auto shape = decode_message_shape(gathered());
    if (!shape) return box_.group_.fail_for(peer_, "a message shape that cannot be read");
    if (header_.kind == FrameKind::offer)
      box_.on_offer(peer_, header_, *shape);
    else
      box_.on_refuse(peer_, header_.sequence, *shape);
  }

 private:
  Mailbox& box_;
  const int peer_;
  FrameHeader header_{};
};

namespace {

DiscardSink nothing_follows;

}  // namespace

Mailbox::Mailbox(std::uint16_t stream, GroupContext& group)
    : stream_(stream), group_(group), boxes_(static_cast<std::size_t>(group.options().size)) {
  for (int peer = 0; peer < group.options().size; ++peer)
    boxes_[static_cast<std::size_t>(peer)].record = std::make_unique<RecordSink>(*this, peer);
}

Mailbox::~Mailbox() = default;

std::string Mailbox::message_name(int source, int destination, std::uint64_t sequence) const {
  const Membership& members = group_.members();
  return "message " + std::to_string(sequence) + " of stream " + std::to_string(stream_) + members.suffix() + " from " +
         members.name_of(source) + " to " + members.name_of(destination);
}

void Mailbox::send(MessageTask task) {
  const int peer = task.peer;
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  const std::uint64_t sequence = box.next_out++;
  if (group_.departure(peer) != GroupContext::Departure::none) {
    const Status status{
        Errc::peer_lost,
        group_.members().name_of(peer) + " left the group; " + message_name(group_.options().rank, peer, sequence) + " cannot be sent",
        group_.members().world_rank(peer)};
    group_.fail(status);
    return group_.complete(std::move(task.completion), status);
  }
  auto& message = box.outgoing[sequence];
  message = std::make_unique<Outgoing>(*this, sequence, std::move(task));
  group_.session(peer).mark_ready(*message);
}

void Mailbox::receive(MessageTask task) {
  const int peer = task.peer;
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  const std::uint64_t sequence = box.next_in++;
  const bool offered = box.early.count(sequence) != 0;
  box.incoming[sequence] = std::make_unique<Incoming>(*this, sequence, std::move(task));
  if (offered) return match(peer, sequence);
  if (group_.departure(peer) != GroupContext::Departure::none) on_peer_left(peer);
}

PayloadSink* Mailbox::on_frame(int peer, const FrameHeader& header) {
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  switch (header.kind) {
    case FrameKind::offer:
    case FrameKind::refuse:
      if (header.payload_bytes > kMaxMessageShapeBytes) break;
      box.record->begin(header);
      return box.record.get();
    case FrameKind::accept:
      if (header.payload_bytes != 0) break;
      on_accept(peer, header.sequence);
      return &nothing_follows;
    case FrameKind::message:
      return on_message(peer, header);
    default:
      break;
  }
  group_.fail_for(peer, "a frame about a message that cannot be read");
  return nullptr;
}

void Mailbox::on_offer(int peer, const FrameHeader& header, const MessageShape& shape) {
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  const std::uint64_t sequence = header.sequence;
  const bool eager = (header.flags & kFlagEager) != 0;
  const auto posted = box.incoming.find(sequence);
  const bool known = box.early.count(sequence) != 0 || (posted != box.incoming.end() && posted->second->matched());
  const bool past = sequence < box.next_in && posted == box.incoming.end();
  if (known || past) return group_.fail_for(peer, "the same message twice");
  if (sequence - std::min(sequence, box.next_in) > kMaxOffers) return group_.fail_for(peer, "more messages than may wait");
  if (eager && shape.bytes() > kEagerWindowBytes)
    return group_.fail_for(peer, "more bytes of a message than allowed before it is accepted");
  box.early[sequence] = std::make_unique<EarlyMessage>(*this, peer, sequence, shape, eager);
  if (posted != box.incoming.end()) match(peer, sequence);
}

void Mailbox::match(int peer, std::uint64_t sequence) {
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  const auto early = box.early.find(sequence);
  Incoming& incoming = *box.incoming.at(sequence);
  FrameHeader answer;
  answer.group = group_.members().group_id(peer);
  answer.stream = stream_;
  answer.sequence = sequence;
  if (!(early->second->shape() == incoming.task().shape)) {
    const int rank = group_.options().rank;
    const auto record = encode_message_shape(incoming.task().shape);
    answer.kind = FrameKind::refuse;
    group_.session(peer).send_owned(answer, ConstBytes(record.bytes).first(record.size));
    const Status status{Errc::mismatch,
                        message_name(peer, rank, sequence) + ": " + group_.members().name_of(peer) + " sent " +
                            describe(early->second->shape()) + ", " + group_.members().name_of(rank) + " receives " +
                            describe(incoming.task().shape),
                        group_.members().world_rank(peer)};
    if (early->second->refuse()) box.early.erase(early);
    return finish(box.incoming, sequence, status);
  }
  if (!incoming.matched()) {
    incoming.set_matched();
    answer.kind = FrameKind::accept;
    group_.session(peer).send_owned(answer, {});
  }
  // Bytes that came before the receive was posted, but for a frame that is still coming: frame_ended() comes back here for it.
  if (early->second->in_frame()) return;
  early->second->release();
  incoming.take(early->second->bytes());
  box.early.erase(early);
  incoming.finish_if_done();
}

PayloadSink* Mailbox::on_message(int peer, const FrameHeader& header) {
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  Status status{Errc::protocol_error, "bytes of a message that was not offered"};
  PayloadSink* sink = nullptr;
  if (const auto early = box.early.find(header.sequence); early != box.early.end()) {
    status = early->second->begin_frame(header);
    sink = early->second.get();
  } else if (const auto posted = box.incoming.find(header.sequence); posted != box.incoming.end()) {
    status = posted->second->begin_frame(header);
    sink = posted->second.get();
  }
  if (status.ok()) return sink;
  group_.fail_for(peer, status.text());
  return nullptr;
}

void Mailbox::on_accept(int peer, std::uint64_t sequence) {
  auto& outgoing = boxes_[static_cast<std::size_t>(peer)].outgoing;
  const auto it = outgoing.find(sequence);
  if (it == outgoing.end() || !it->second->awaits_answer())
    return group_.fail_for(peer, "an answer to a message that does not wait for one");
  it->second->on_accept();
}

void Mailbox::on_refuse(int peer, std::uint64_t sequence, const MessageShape& theirs) {
  auto& outgoing = boxes_[static_cast<std::size_t>(peer)].outgoing;
  const auto it = outgoing.find(sequence);
  if (it == outgoing.end() || !it->second->awaits_answer())
    return group_.fail_for(peer, "an answer to a message that does not wait for one");
  const int rank = group_.options().rank;
  it->second->on_refuse({Errc::mismatch,
                         message_name(rank, peer, sequence) + ": " + group_.members().name_of(rank) + " sent " +
                             describe(it->second->task().shape) + ", " + group_.members().name_of(peer) + " receives " + describe(theirs),
                         group_.members().world_rank(peer)});
}

void Mailbox::on_peer_left(int peer) {
  Box& box = boxes_[static_cast<std::size_t>(peer)];
  // A refused message has ended, even if the rest of its bytes has nowhere to go any more.
  for (auto next = box.outgoing.begin(); group_.departure(peer) == GroupContext::Departure::from_world && next != box.outgoing.end();) {
    const auto message = next++;
    if (message->second->refused()) finish(box.outgoing, message->first, Status(message->second->outcome()));
  }
  // Who leaves the group alone has taken all that it has accepted, and what has been answered ends by itself.
  const bool waiting_to_send = std::any_of(box.outgoing.begin(), box.outgoing.end(), [&](const auto& entry) {
    return group_.departure(peer) == GroupContext::Departure::from_world || !entry.second->answered();
  });
  const bool waiting_to_receive =
      std::any_of(box.incoming.begin(), box.incoming.end(), [&](const auto& entry) { return box.early.count(entry.first) == 0; });
  if (!waiting_to_send && !waiting_to_receive) return;
  group_.fail({Errc::peer_lost,
               group_.members().name_of(peer) + " left the group while a message of stream " + std::to_string(stream_) +
                   group_.members().suffix() + (waiting_to_send ? " to" : " from") + " it was under way",
               group_.members().world_rank(peer)});
}

Status Mailbox::check_deadlines(Instant now) const {
  const int rank = group_.options().rank;
  for (int peer = 0; peer < group_.options().size; ++peer) {
    const Box& box = boxes_[static_cast<std::size_t>(peer)];
    for (const auto& [sequence, message] : box.outgoing) {
      if (now < message->deadline()) continue;
      return {Errc::timed_out,
              message_name(rank, peer, sequence) + " (" + describe(message->task().shape) + ") was not received after " +
                  std::to_string(message->task().timeout.whole_milliseconds()) + " ms",
              group_.members().world_rank(peer)};
    }
    for (const auto& [sequence, message] : box.incoming) {
      if (now < message->deadline()) continue;
      return {Errc::timed_out,
              message_name(peer, rank, sequence) + " (" + describe(message->task().shape) + ") did not come within " +
                  std::to_string(message->task().timeout.whole_milliseconds()) + " ms",
              group_.members().world_rank(peer)};
    }
  }
  return {};
}

std::optional<Pending> Mailbox::pending() const {
  std::optional<Pending> oldest;
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const auto look = [&](const auto& messages, bool outgoing) {
      for (const auto& [sequence, message] : messages)
        if (!oldest || message->started() < oldest->started)
          oldest = Pending{nullptr, stream_, sequence, message->started(), static_cast<int>(i), outgoing};
    };
    look(boxes_[i].outgoing, true);
    look(boxes_[i].incoming, false);
  }
  return oldest;
}

wire::OperationState Mailbox::state(int peer, std::uint64_t sequence, const MessageShape& shape, bool outgoing, Duration time) const {
  wire::OperationState state;
  state.call = (outgoing ? "send(" : "recv(") + describe(shape) + (outgoing ? ") to " : ") from ") + group_.members().name_of(peer);
  state.number = sequence;
  state.stream = stream_;
  state.group = group_.members().suffix();
  state.milliseconds = static_cast<std::uint64_t>(time.whole_milliseconds());
  return state;
}

wire::OperationState Mailbox::state(const Pending& message, Instant now) const {
  const Box& box = boxes_[static_cast<std::size_t>(message.peer)];
  const auto tell = [&](const auto& one) {
    wire::OperationState told = state(message.peer, message.sequence, one.task().shape, message.outgoing, now - message.started);
    told.waits_for = {static_cast<std::uint32_t>(group_.members().world_rank(message.peer))};
    (message.outgoing ? told.sent : told.received) = one.bytes_done();
    (message.outgoing ? told.to_send : told.to_receive) = one.task().shape.bytes();
    return told;
  };
  return message.outgoing ? tell(*box.outgoing.at(message.sequence)) : tell(*box.incoming.at(message.sequence));
}

void Mailbox::remember(const MessageTask& task, std::uint64_t sequence, bool outgoing) {
  ++ended_;
  last_ = {task.peer, sequence, task.shape, outgoing, group_.loop().now()};
}

void Mailbox::add_to(wire::RankState& rank, Instant now) const {
  if (const auto oldest = pending()) rank.running.push_back(state(*oldest, now));
  add_ended(rank, ended_, now - last_.at, [&] { return state(last_.peer, last_.sequence, last_.shape, last_.outgoing, now - last_.at); });
}

void Mailbox::fail_all(const Status& status) {
  for (Box& box : boxes_) {
    for (auto& [sequence, message] : std::exchange(box.outgoing, {})) group_.complete(message->take_completion(), status);
    for (auto& [sequence, message] : std::exchange(box.incoming, {})) group_.complete(message->take_completion(), status);
  }
}

bool Mailbox::idle() const {
  return std::all_of(boxes_.begin(), boxes_.end(), [](const Box& box) { return box.outgoing.empty() && box.incoming.empty(); });
}

}  // namespace ringlet
