#include "core/engine/peer_messages.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

namespace {

constexpr std::size_t kMaxOffers = 65'536;

DiscardSink nothing_follows;

}  // namespace

/// Takes the record of an offer or a refusal.
class PeerMessages::RecordSink final : public GatheringSink {
 public:
  explicit RecordSink(PeerMessages& peer) : peer_(peer) {}
  void begin(const FrameHeader& header) {
    GatheringSink::begin();
    header_ = header;
  }
  void frame_ended() override {
    const auto shape = decode_message_shape(gathered());
    if (!shape) return peer_.group_.fail_for(peer_.peer_, "a message shape that cannot be read");
    if (header_.kind == FrameKind::offer)
      peer_.on_offer(header_, *shape);
    else
      peer_.on_refuse(header_.sequence, *shape);
  }

 private:
  PeerMessages& peer_;
  FrameHeader header_{};
};

PeerMessages::PeerMessages(GroupContext& group, std::uint16_t stream, int peer, std::function<void()> on_offered)
    : group_(group), stream_(stream), peer_(peer), on_offered_(std::move(on_offered)), record_(std::make_unique<RecordSink>(*this)) {}

PeerMessages::~PeerMessages() = default;

// --- from the program ---

void PeerMessages::send(MessageTask task) {
  const std::uint64_t sequence = next_out_++;
  if (group_.departure(peer_) != GroupContext::Departure::none) {
    const Status status{Errc::peer_lost, group_.members().name_of(peer_) + " left the group; " + name(true, sequence) + " cannot be sent",
                        group_.members().world_rank(peer_)};
    group_.record_message(stream_, sequence, true, task, true);
    group_.fail(status);
    return group_.complete(std::move(task.completion), status);
  }
  auto& message = outgoing_[sequence];
  message = std::make_unique<OutgoingMessage>(*this, sequence, std::move(task));
  session().mark_ready(*message);
}

void PeerMessages::receive(MessageTask task) {
  const std::uint64_t sequence = next_in_++;
  const bool offered = early_.count(sequence) != 0;
  incoming_[sequence] = std::make_unique<IncomingMessage>(*this, sequence, std::move(task));
  if (offered) return match(sequence);
  if (group_.departure(peer_) != GroupContext::Departure::none) on_peer_left();
}

void PeerMessages::finish_outgoing(std::uint64_t sequence) {
  const auto node = outgoing_.extract(sequence);
  remember(node.mapped()->task(), sequence, true);
  group_.record_message(stream_, sequence, true, node.mapped()->task(), !node.mapped()->outcome().ok());
  group_.complete(node.mapped()->take_completion(), node.mapped()->outcome());
}

void PeerMessages::finish_incoming(std::uint64_t sequence, const Status& status) {
  const auto node = incoming_.extract(sequence);
  remember(node.mapped()->task(), sequence, false);
  group_.record_message(stream_, sequence, false, node.mapped()->task(), !status.ok());
  group_.complete(node.mapped()->take_completion(), status);
}

void PeerMessages::fail_all(const Status& status) {
  const auto end = [&](auto messages, bool outgoing) {
    for (auto& [sequence, message] : messages) {
      group_.record_message(stream_, sequence, outgoing, message->task(), true);
      group_.complete(message->take_completion(), status);
    }
  };
  end(std::exchange(outgoing_, {}), true);
  end(std::exchange(incoming_, {}), false);
}

// --- from the peer ---

FrameHeader PeerMessages::header(FrameKind kind, std::uint64_t sequence) const {
  FrameHeader header;
  header.kind = kind;
  header.group = group_.members().group_id(peer_);
  header.stream = stream_;
  header.sequence = sequence;
  return header;
}

bool PeerMessages::take_eager(std::size_t bytes) {
  if (bytes > std::min(group_.options().eager_bytes, session().early_room().payload_bytes)) return false;
  session().take_early({bytes, 0});
  return true;
}

PayloadSink* PeerMessages::on_frame(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::offer:
    case FrameKind::refuse:
      if (header.payload_bytes > kMaxMessageShapeBytes) break;
      record_->begin(header);
      return record_.get();
    case FrameKind::accept:
      if (header.payload_bytes != 0) break;
      on_accept(header.sequence);
      return &nothing_follows;
    case FrameKind::message:
      return on_message(header);
    default:
      break;
  }
  group_.fail_for(peer_, "a frame about a message that cannot be read");
  return nullptr;
}

void PeerMessages::on_offer(const FrameHeader& header, const MessageShape& shape) {
  const std::uint64_t sequence = header.sequence;
  const bool eager = (header.flags & kFlagEager) != 0;
  const auto posted = incoming_.find(sequence);
  const bool known = early_.count(sequence) != 0 || (posted != incoming_.end() && posted->second->matched());
  const bool past = sequence < next_in_ && posted == incoming_.end();
  if (known || past) return group_.fail_for(peer_, "the same message twice");
  if (sequence - std::min(sequence, next_in_) > kMaxOffers) return group_.fail_for(peer_, "more messages than may wait");
  // An eager message has its whole size counted, so that all its bytes are sure to have room.
  const EarlyCost cost{eager ? shape.bytes() : 0, EarlyCost::kRecordBytes};
  if (!session().keep_early(cost)) return group_.fail_for(peer_, "more of messages than allowed before they are received");
  early_[sequence] = std::make_unique<EarlyMessage>(*this, sequence, shape, eager, cost);
  posted != incoming_.end() ? match(sequence) : on_offered_();
}

void PeerMessages::match(std::uint64_t sequence) {
  const auto early = early_.find(sequence);
  IncomingMessage& incoming = *incoming_.at(sequence);
  if (!(early->second->shape() == incoming.task().shape)) {
    const auto record = encode_message_shape(incoming.task().shape);
    session().send_owned(header(FrameKind::refuse, sequence), ConstBytes(record.bytes).first(record.size));
    const Status status = mismatch(false, sequence, early->second->shape(), incoming.task().shape);
    if (early->second->refuse()) early_.erase(early);
    return finish_incoming(sequence, status);
  }
  if (!incoming.matched()) {
    incoming.set_matched();
    session().send_owned(header(FrameKind::accept, sequence), {});
  }
  // The bytes that came before the receive was posted are taken now, or, where a frame is still coming, at its end, which leads here again.
  if (early->second->in_frame()) return;
  early->second->release();
  incoming.take(early->second->bytes());
  early_.erase(early);
  incoming.finish_if_done();
}

void PeerMessages::on_early_bytes(std::uint64_t sequence) {
  if (incoming_.count(sequence) != 0) match(sequence);
}

PayloadSink* PeerMessages::on_message(const FrameHeader& header) {
  Status status{Errc::protocol_error, "bytes of a message that was not offered"};
  PayloadSink* sink = nullptr;
  if (const auto early = early_.find(header.sequence); early != early_.end()) {
    status = early->second->begin_frame(header);
    sink = early->second.get();
  } else if (const auto posted = incoming_.find(header.sequence); posted != incoming_.end()) {
    status = posted->second->begin_frame(header);
    sink = posted->second.get();
  }
  if (status.ok()) return sink;
  group_.fail_for(peer_, status.text());
  return nullptr;
}

void PeerMessages::on_accept(std::uint64_t sequence) {
  const auto it = outgoing_.find(sequence);
  if (it == outgoing_.end() || !it->second->awaits_answer())
    return group_.fail_for(peer_, "an answer to a message that does not wait for one");
  it->second->on_accept();
}

void PeerMessages::on_refuse(std::uint64_t sequence, const MessageShape& theirs) {
  const auto it = outgoing_.find(sequence);
  if (it == outgoing_.end() || !it->second->awaits_answer())
    return group_.fail_for(peer_, "an answer to a message that does not wait for one");
  it->second->on_refuse(mismatch(true, sequence, it->second->task().shape, theirs));
}

Status PeerMessages::mismatch(bool outgoing, std::uint64_t sequence, const MessageShape& sent, const MessageShape& received) const {
  const Membership& members = group_.members();
  const int sender = outgoing ? group_.options().rank : peer_, receiver = outgoing ? peer_ : group_.options().rank;
  return {Errc::mismatch,
          name(outgoing, sequence) + ": " + members.name_of(sender) + " sent " + describe(sent) + ", " + members.name_of(receiver) +
              " receives " + describe(received),
          members.world_rank(peer_)};
}

void PeerMessages::on_peer_left() {
  const bool from_world = group_.departure(peer_) == GroupContext::Departure::from_world;
  // A refused message has ended, even if the rest of its bytes can no longer be sent.
  for (auto next = outgoing_.begin(); from_world && next != outgoing_.end();) {
    const auto message = next++;
    if (message->second->refused()) finish_outgoing(message->first);
  }
  // A peer that leaves only the group has received all that it accepted, and messages that were answered end without it.
  const bool waiting_to_send =
      std::any_of(outgoing_.begin(), outgoing_.end(), [&](const auto& entry) { return from_world || !entry.second->answered(); });
  const bool waiting_to_receive =
      std::any_of(incoming_.begin(), incoming_.end(), [&](const auto& entry) { return early_.count(entry.first) == 0; });
  if (!waiting_to_send && !waiting_to_receive) return;
  group_.fail({Errc::peer_lost,
               group_.members().name_of(peer_) + " left the group while a message of stream " + std::to_string(stream_) +
                   group_.members().suffix() + (waiting_to_send ? " to" : " from") + " it was under way",
               group_.members().world_rank(peer_)});
}

// --- texts and states ---

std::string PeerMessages::name(bool outgoing, std::uint64_t sequence) const {
  const Membership& members = group_.members();
  const int own = group_.options().rank;
  return "message " + std::to_string(sequence) + " of stream " + std::to_string(stream_) + members.suffix() + " from " +
         members.name_of(outgoing ? own : peer_) + " to " + members.name_of(outgoing ? peer_ : own);
}

Status PeerMessages::check_deadlines(Instant now) const {
  const auto missed = [&](bool outgoing, std::uint64_t sequence, const MessageTask& task, const char* what) {
    return Status{
        Errc::timed_out,
        name(outgoing, sequence) + " (" + describe(task.shape) + ")" + what + std::to_string(task.timeout.whole_milliseconds()) + " ms",
        group_.members().world_rank(peer_)};
  };
  for (const auto& [sequence, message] : outgoing_)
    if (now >= message->deadline()) return missed(true, sequence, message->task(), " was not received after ");
  for (const auto& [sequence, message] : incoming_)
    if (now >= message->deadline()) return missed(false, sequence, message->task(), " did not come within ");
  return {};
}

std::optional<Pending> PeerMessages::pending() const {
  std::optional<Pending> oldest;
  const auto look = [&](const auto& messages, bool outgoing) {
    for (const auto& [sequence, message] : messages) {
      const Instant started{message->deadline().nanoseconds - message->task().timeout.nanoseconds};
      if (!oldest || started < oldest->started) oldest = Pending{nullptr, stream_, sequence, started, peer_, outgoing};
    }
  };
  look(outgoing_, true);
  look(incoming_, false);
  return oldest;
}

wire::OperationState PeerMessages::state(bool outgoing, std::uint64_t sequence, const MessageShape& shape, Duration time) const {
  wire::OperationState state;
  state.call = (outgoing ? "send(" : "recv(") + describe(shape) + (outgoing ? ") to " : ") from ") + group_.members().name_of(peer_);
  state.number = sequence;
  state.stream = stream_;
  state.group = group_.members().suffix();
  state.milliseconds = static_cast<std::uint64_t>(time.whole_milliseconds());
  return state;
}

wire::OperationState PeerMessages::state(const Pending& message, Instant now) const {
  const auto tell = [&](const auto& one) {
    wire::OperationState told = state(message.outgoing, message.sequence, one.task().shape, now - message.started);
    told.waits_for = {static_cast<std::uint32_t>(group_.members().world_rank(peer_))};
    (message.outgoing ? told.sent : told.received) = one.bytes_done();
    (message.outgoing ? told.to_send : told.to_receive) = one.task().shape.bytes();
    return told;
  };
  return message.outgoing ? tell(*outgoing_.at(message.sequence)) : tell(*incoming_.at(message.sequence));
}

void PeerMessages::remember(const MessageTask& task, std::uint64_t sequence, bool outgoing) {
  ++ended_;
  last_ = {sequence, task.shape, outgoing, group_.loop().now()};
}

void PeerMessages::add_ended_to(wire::RankState& rank, Instant now) const {
  add_ended(rank, ended_, now - last_.at, [&] { return state(last_.outgoing, last_.sequence, last_.shape, now - last_.at); });
}

}  // namespace ringlet
