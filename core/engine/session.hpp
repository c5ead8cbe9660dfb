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

#include "core/engine/payload_sink.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

class Session;

/// A frame on its way out. The payload is the source's memory and stays valid until frame_sent() or until the source is withdrawn.
struct OutgoingFrame {
  FrameHeader header;
  ConstBytes payload;
};

/// Something with frames for one session. It marks itself ready; the session then asks it for one frame at a time, in turns with the
/// others.
class FrameSource {
 public:
  /// The next frame, or nothing now: then it is forgotten until it marks itself ready again.
  virtual std::optional<OutgoingFrame> next_frame() = 0;
  /// The frame given first of those not yet reported has left, whole.
  virtual void frame_sent(const FrameHeader& header) = 0;

  // The session's own: the queue of those that have frames, a list through the sources themselves so that it never allocates.
  bool queued = false;
  FrameSource* next_queued = nullptr;

 protected:
  ~FrameSource() = default;
};

/// What a session tells. All from the loop; destroying the session inside these calls is not allowed (defer it).
class SessionOwner {
 public:
  /// A frame begins. Returns where its payload goes, or null to refuse it: then the owner has called Session::fail() or the session is to
  /// drop it.
  virtual PayloadSink* on_frame(Session& session, const FrameHeader& header) = 0;
  /// The link broke, ended without goodbye, or the peer broke the protocol. Once; nothing is received after it.
  virtual void on_session_failed(Session& session, const Status& status) = 0;
  /// The peer has ended its direction after a goodbye, or after this side has ended too. Once.
  virtual void on_session_ended(Session& session) = 0;

 protected:
  ~SessionOwner() = default;
};

/// What carries the bytes of several links, from what it is of those looked at so far ("none" at first) and of one more: "mixed" where
/// they differ.
inline std::string_view common_medium(std::string_view so_far, std::string_view medium) {
  return medium.empty() || medium == so_far ? so_far : so_far == "none" ? medium : "mixed";
}

struct SessionOptions {
  std::size_t receive_buffer_bytes = 256 << 10;
  std::size_t batch_bytes = 1 << 20;  // of payload handed to the link at once, unless it wants more
};

/// The frames to and from one peer over its link, which is authenticated. Belongs to the loop's thread.
class Session final : private LinkUser {
 public:
  Session(std::unique_ptr<Link> link, EventLoop& loop, SessionOwner& owner, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void set_owner(SessionOwner& owner) { owner_ = &owner; }
  /// The peer's rank; -1 until it is known.
  int peer() const { return peer_; }
  void set_peer(int rank) { peer_ = rank; }
  std::string peer_name() const;
  /// This end's, as Link::own_name().
  std::string own_name() const;
  /// The link's; empty once it is closed.
  std::string_view medium() const;

  /// Puts `source` in the queue of those that have frames, unless it is there.
  void mark_ready(FrameSource& source);
  /// Forgets a source that is about to go; none of its frames may be on their way.
  void withdraw(FrameSource& source);
  /// Queues a frame whose payload is copied; before all sources' frames.
  void send_owned(FrameHeader header, ConstBytes payload);
  /// Forgets all sources. A frame that has partly left is completed from a copy, so that what follows can still be read.
  void drop_sources();
  /// Everything from now on is read and thrown away; on_frame is not called any more.
  void discard_received();
  /// Throws away what is left of the frame that is being received, if it belongs to an operation of this group: its sink may go then.
  void discard_frame_of(std::uint32_t group);
  /// Ends this direction once the queue is empty.
  void finish_sending();
  /// Closes the link without a word to the owner.
  void close();

  bool closed() const { return link_ == nullptr; }
  /// Something waits for the link to take it.
  bool has_unsent() const { return first_part_ < part_count_ || !owned_.empty(); }
  /// Frames of send_owned() that have not left whole.
  std::size_t unsent_owned() const { return owned_.size(); }
  bool receive_has_ended() const { return receive_ended_; }
  bool goodbye_received() const { return goodbye_received_; }
  Instant last_received() const { return last_received_; }
  void touch_received(Instant now) { last_received_ = now; }
  Instant last_sent() const { return last_sent_; }
  /// Since the link was opened, as far as it has taken and given them.
  ///@{
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  ///@}

 private:
  struct OwnedFrame {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  /// What a pair of parts is: raw bytes, an owned frame (the first of `owned_`), or a source's frame.
  struct BatchEntry {
    enum class Kind : std::uint8_t { raw, owned, source } kind;
    FrameHeader header;
    FrameSource* source;
  };
  static constexpr std::size_t kMaxBatchFrames = 64;

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  void mark_queued(FrameSource& source);
  FrameSource* take_queued();
  void fill_batch();
  void add_to_batch(BatchEntry::Kind kind, const FrameHeader& header, ConstBytes payload, FrameSource* source);
  void entry_left(std::size_t index);
  void parse();
  bool parse_header();
  bool take_payload();
  void end_frame();
  void fail(const Status& status);

  EventLoop& loop_;
  SessionOwner* owner_;
  std::unique_ptr<Link> link_;
  const std::size_t batch_bytes_;
  int peer_ = -1;

  // sending
  FrameSource* first_queued_ = nullptr;
  FrameSource* last_queued_ = nullptr;
  std::deque<OwnedFrame> owned_;
  std::vector<std::byte> raw_;  // leaves before all frames: the rest of a frame whose source is gone
  std::vector<std::byte> raw_in_batch_;
  std::array<BatchEntry, kMaxBatchFrames> batch_{};
  std::array<std::array<std::byte, kFrameHeaderBytes>, kMaxBatchFrames> headers_{};
  std::array<ConstBytes, 2 * kMaxBatchFrames> parts_{};  // two per entry: header and payload
  std::size_t part_count_ = 0, first_part_ = 0;
  Instant last_sent_{};
  std::uint64_t bytes_sent_ = 0;

  // receiving
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  std::array<Bytes, 2> receive_parts_{};
  FrameHeader header_{};
  PayloadSink* sink_ = nullptr;
  std::size_t payload_left_ = 0;
  bool in_frame_ = false;
  bool direct_ = false;       // the first receive part is the sink's memory
  bool header_only_ = false;  // bulk payloads follow each other: do not read past the next header
  bool discarding_ = false;
  bool goodbye_received_ = false;
  bool receive_ended_ = false;
  Instant last_received_{};
  std::uint64_t bytes_received_ = 0;
};

}  // namespace ringlet
