#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <ringlet/status.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/early_budget.hpp"
#include "core/engine/payload_sink.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "core/ports/trace.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

class Session;

/// A frame to be sent. The payload is the source's memory and stays valid until frame_sent() or until the source is withdrawn.
struct OutgoingFrame {
  FrameHeader header;
  ConstBytes payload;
  bool for_caches = false;  // see LinkUser::sends_for_caches()
};

/// Has frames for one session. Once it is marked ready (Session::mark_ready), the session asks it for one frame at a time, in turns with
/// other sources.
class FrameSource {
 public:
  /// Returns the next frame, or nothing where there is none now; the session then does not ask again until the source is marked ready
  /// again.
  virtual std::optional<OutgoingFrame> next_frame() = 0;
  /// The oldest frame that has not been reported yet has left completely.
  virtual void frame_sent(const FrameHeader& header) = 0;

  // Used by the session alone. Its queue of sources is a list that is linked through the sources, so that it never allocates.
  bool queued = false;
  bool waits_for_room = false;
  FrameSource* next_queued = nullptr;

 protected:
  ~FrameSource() = default;
};

/// Is told of a session's events. All calls come from the loop. The session may not be destroyed inside them; that has to be deferred.
class SessionOwner {
 public:
  /// A frame begins. Returns where its payload goes, Session::gather_control() for a control frame; null lets the session discard it.
  virtual PayloadSink* on_frame(Session& session, const FrameHeader& header) = 0;
  /// The payload of a frame is complete that was given to gather_control(). It is borrowed for the call.
  virtual void on_control(Session&, ConstBytes) {}
  /// The link broke, ended without goodbye, or the peer broke the protocol. Called at most once; nothing is received after it.
  virtual void on_session_failed(Session& session, const Status& status) = 0;
  /// The peer has ended its direction after a goodbye, or after this side has ended its own. Called at most once.
  virtual void on_session_ended(Session& session) = 0;

 protected:
  ~SessionOwner() = default;
};

/// Combines the medium, or the cipher, of the links looked at so far ("none" at first) with that of one more link: "mixed" where they
/// differ.
inline std::string_view common_name(std::string_view so_far, std::string_view name) {
  return name.empty() || name == so_far ? so_far : so_far == "none" ? name : "mixed";
}

struct SessionOptions {
  std::size_t receive_buffer_bytes = 256 << 10;
  std::size_t batch_bytes = 1 << 20;  // of payload handed to the link at once, unless it wants more
  Trace* trace = nullptr;             // where segments are recorded; null: nowhere
};

/// The frames to and from one peer over its link, which is authenticated. Belongs to the loop's thread.
class Session final : private LinkUser {
 public:
  Session(std::unique_ptr<Link> link, EventLoop& loop, SessionOwner& owner, const SessionOptions& options);
  /// A session whose link is closed, in the place of one that was handed on.
  Session(EventLoop& loop, SessionOwner& owner, int peer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void set_owner(SessionOwner& owner) { owner_ = &owner; }
  /// The peer's rank; -1 until it is known.
  int peer() const { return peer_; }
  void set_peer(int rank) { peer_ = rank; }
  std::string peer_name() const;
  /// This end's address (see Link::own_name()).
  std::string own_name() const;
  /// The link's medium; empty once it is closed.
  std::string_view medium() const;
  /// The link's cipher; empty where it is not encrypted, or closed.
  std::string_view cipher() const;
  std::optional<SendCounters> send_counters() const { return link_ ? link_->send_counters() : std::nullopt; }

  /// Puts `source` into the queue of sources that have frames, unless it is in it.
  void mark_ready(FrameSource& source);
  /// Forgets a source that is about to be destroyed. None of its frames may be under way.
  void withdraw(FrameSource& source);

  // What may be sent to the peer, and what is kept for it, before the other end has called for it.
  void set_early_limits(const EarlyCost& limits) { early_ = EarlyBudget(limits); }
  const EarlyCost& early_room() const { return early_.room(); }
  void take_early(const EarlyCost& cost) { early_.take(cost); }
  /// Takes `cost` for a call or an offer of `source`. Returns false where there is no room; the source is marked ready once there is.
  bool take_early_record(FrameSource& source, const EarlyCost& cost);
  void give_back_early(const EarlyCost& cost);
  /// The source needs no room any more.
  void forget_waiting(FrameSource& source);
  /// Counts what the peer has sent. Returns false where that is more than it may send.
  bool keep_early(const EarlyCost& cost) { return early_.keep(cost); }
  void release_early(const EarlyCost& cost) { early_.release(cost); }
  const EarlyCost& kept_early() const { return early_.kept(); }

  /// Queues a frame ahead of all sources' frames that have not begun to leave. The payload is copied.
  void send_owned(FrameHeader header, ConstBytes payload);
  /// Forgets all sources. A frame that has partly left is completed from a copy, so that the peer can still read the frames after it.
  void drop_sources();
  /// Where the payload of a control frame goes. It is passed on when it is complete, to the owner that the session has then.
  PayloadSink* gather_control() {
    control_sink_.begin();
    return &control_sink_;
  }
  /// From now on everything is read and discarded; on_frame is not called any more.
  void discard_received();
  /// Discards the rest of the frame that is being received, if it belongs to an operation, of this group or of any. Its sink may be
  /// destroyed then.
  ///@{
  void discard_frame_of(std::uint32_t group);
  void discard_frame_of_operation();
  ///@}
  /// Ends this direction once the queue is empty.
  void finish_sending();
  /// Closes the link without calling the owner.
  void close();

  bool closed() const { return link_ == nullptr; }
  /// Whether bytes wait for the link to take them.
  bool has_unsent() const { return first_part_ < part_count_ || !owned_.empty(); }
  /// The number of frames of send_owned() that have not left completely.
  std::size_t unsent_owned() const { return owned_.size(); }
  bool receive_has_ended() const { return receive_ended_; }
  bool goodbye_received() const { return goodbye_received_; }
  Instant last_received() const { return last_received_; }
  /// When the peer was last seen to be there: bytes came from it, or it took some of those that had to wait for it. A full network may hold
  /// up for long what a peer sends that is well.
  Instant last_sign_of_life() const { return last_sign_of_life_; }
  /// The peer is silent. The link stays, so that it can be told what came of that.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }
  void touch_received(Instant now) { last_received_ = last_sign_of_life_ = now; }
  Instant last_sent() const { return last_sent_; }
  /// The number of bytes that the link has taken, or delivered, since it was opened.
  ///@{
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  ///@}

 private:
  struct OwnedFrame {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  /// Says what a pair of parts holds: raw bytes, an owned frame (the first of `owned_`), or a source's frame.
  struct BatchEntry {
    enum class Kind : std::uint8_t { raw, owned, source } kind;
    FrameHeader header;
    FrameSource* source;
    Instant since{};  // if there is a trace: when it was put in the batch
  };
  static constexpr std::size_t kMaxBatchFrames = 64;

  class ControlSink final : public GatheringSink {
   public:
    explicit ControlSink(Session& session) : session_(session) {}
    void frame_ended() override { session_.owner_->on_control(session_, gathered()); }

   private:
    Session& session_;
  };

  std::span<const ConstBytes> to_send() override;
  bool sends_for_caches() const override { return batch_is_for_caches_; }
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  void mark_queued(FrameSource& source);
  FrameSource* take_queued();
  void wake_waiting();
  void fill_batch();
  void put_owned_ahead();
  bool current_is_untouched() const;
  void add_to_batch(BatchEntry::Kind kind, const FrameHeader& header, ConstBytes payload, FrameSource* source);
  void put_in_batch(std::size_t index, const BatchEntry& entry, ConstBytes payload);
  void entry_left(std::size_t index);
  void pop_owned();
  void parse();
  bool parse_header();
  bool take_payload();
  void end_frame();
  void fail(const Status& status);

  EventLoop& loop_;
  SessionOwner* owner_;
  std::unique_ptr<Link> link_;
  const std::size_t batch_bytes_;
  Trace* const trace_ = nullptr;
  int peer_ = -1;

  // sending
  FrameSource* first_queued_ = nullptr;
  FrameSource* last_queued_ = nullptr;
  EarlyBudget early_{EarlyBudget::limits_in_world(2)};
  std::deque<FrameSource*> waiting_;  // for room in the budget
  std::size_t to_wake_ = 0;           // how many of them have not been woken since room was given back
  std::deque<OwnedFrame> owned_;
  std::size_t owned_in_batch_ = 0;  // the first of them
  std::vector<std::byte> raw_;      // the rest of a frame whose source is gone; sent before all frames
  std::vector<std::byte> raw_in_batch_;
  std::array<BatchEntry, kMaxBatchFrames> batch_{};
  std::array<std::array<std::byte, kFrameHeaderBytes>, kMaxBatchFrames> headers_{};
  std::array<ConstBytes, 2 * kMaxBatchFrames> parts_{};  // two per entry: header and payload
  std::size_t part_count_ = 0, first_part_ = 0;
  bool batch_is_for_caches_ = false;
  std::optional<Instant> waits_since_;  // the link has taken only a part of what it was given last
  Instant last_sent_{};
  std::uint64_t bytes_sent_ = 0;

  // receiving
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  std::array<Bytes, 2> receive_parts_{};
  FrameHeader header_{};
  ControlSink control_sink_{*this};
  PayloadSink* sink_ = nullptr;
  std::size_t payload_left_ = 0;
  bool in_frame_ = false;
  bool direct_ = false;  // the first receive part is the sink's memory
  bool discarding_ = false;
  bool goodbye_received_ = false;
  bool given_up_ = false;
  bool receive_ended_ = false;
  Instant last_received_{}, last_sign_of_life_{};
  std::uint64_t bytes_received_ = 0;

  /// The segments in one direction, of which records are made.
  struct TracedSegments {
    std::optional<std::uint32_t> track;
    std::uint64_t count = 0;
  };
  Trace* trace() const { return usable(trace_); }
  void record_segment(TracedSegments& direction, std::string_view name, const FrameHeader& header, Instant since);
  TracedSegments traced_sent_, traced_received_;
  Instant receiving_since_{};
};

}  // namespace ringlet
