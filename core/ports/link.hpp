#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/status.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ringlet {

/// The user of a link. The link asks for the bytes to send, and for room for the bytes that it receives, so that none is copied between the
/// two. All calls come from the loop's thread, never inside a call that the user makes on the link.
class LinkUser {
 public:
  /// The parts to send now, in order; none when there is nothing to send. They are borrowed until sent() has counted them, to_send() is
  /// called again, the user calls Link::recall(), or the link is destroyed.
  virtual std::span<const ConstBytes> to_send() = 0;
  /// Whether the peer works at once on what to_send() returned last, so that it had better come in small amounts through the processors'
  /// caches.
  virtual bool sends_for_caches() const { return false; }
  /// The first `bytes` (> 0) of the parts have left, or were copied.
  virtual void sent(std::size_t bytes) = 0;
  /// Room for the next bytes, in order: at most two parts. Called again after each received(). An empty result pauses receiving until
  /// wake(): the peer then has to wait before it can send more. In the meantime the link may report a failure, but not the peer's end.
  virtual std::span<const Bytes> to_receive() = 0;
  /// `bytes` (> 0) have been put into the parts of the last to_receive(), in order.
  virtual void received(std::size_t bytes) = 0;
  /// The peer has ended its direction properly: nothing more will be received. Sending may go on. Called at most once.
  virtual void receive_ended() = 0;
  /// The link has broken (a reset, an I/O error). Called at most once, and nothing is called after it. `status` outlives the call, also
  /// where the user destroys the link in it.
  virtual void link_failed(const Status& status) = 0;

 protected:
  ~LinkUser() = default;
};

/// A value that the two ends of one authenticated link share, and that no other link has. What one end signs together with it is proved for
/// this link alone. All zero where no handshake made the link.
using LinkBinding = std::array<std::byte, 32>;

/// What a link has sent since it was opened, as the system counts it anyway.
struct SendCounters {
  std::uint64_t bytes = 0;    // that have reached the peer's system
  std::uint64_t busy_ns = 0;  // while bytes were on their way or waited for the network, but not only because the peer read too slowly
};

/// An ordered, reliable byte pipe to one peer. Belongs to the loop's thread. Destruction closes it at once, drops what was not sent, and
/// ends all calls to the user; it is allowed inside a call to the user.
class Link {
 public:
  virtual ~Link() = default;
  /// Begins to call `user`, which outlives the link or is replaced: a second start(), also inside received() or sent(), ends all calls to
  /// the former user. No byte is lost or doubled; parts of the former user that have not left are not sent. Where the peer has ended its
  /// direction, the new user is told as well. Not allowed after link_failed(). The new user calls wake() for what it has to send.
  virtual void start(LinkUser& user) = 0;
  /// Says that there may be something to send, or room to receive. The link asks soon, after the current callback, as long as the peer
  /// takes bytes.
  virtual void wake() = 0;
  /// Ends this direction once to_send() returns nothing. Receiving goes on. Later calls of wake() send nothing.
  virtual void finish_sending() = 0;
  /// Called before the parts that to_send() has lent are freed or changed. The link copies the bytes of them that it still needs, and
  /// returns how many these are; they are the first ones. It sends them later, and sent() does not count them. Returns 0 for a link that
  /// reads the parts only inside its own calls.
  virtual std::size_t recall() { return 0; }
  /// How many bytes to_send() should return at once, for a link that lends them all before the peer takes any. 0 means as few as keep the
  /// link busy.
  virtual std::size_t wanted_batch_bytes() const { return 0; }
  /// Says that bytes will seldom come. A loop that tries to receive in each of its turns then does so only where the system reports some.
  virtual void receive_seldom() {}
  /// The peer's address, for people: "127.0.0.1:40123".
  virtual std::string peer_name() const = 0;
  /// This end's address, which is the peer's peer_name() where nothing between the two translates addresses; empty where it is not known.
  virtual std::string own_name() const { return {}; }
  /// The medium that carries most of the bytes: "tcp" or "memory".
  virtual std::string_view medium() const { return "tcp"; }
  /// The cipher by which most of the bytes are encrypted ("aes256gcm", "chacha20"); empty where they are not.
  virtual std::string_view cipher() const { return {}; }
  /// Nothing where the system does not count, or the bytes do not pass a network.
  virtual std::optional<SendCounters> send_counters() const { return std::nullopt; }

  const LinkBinding& binding() const { return binding_; }
  /// Called once, by the handshake that authenticates the link.
  void set_binding(const LinkBinding& binding) { binding_ = binding; }

 private:
  LinkBinding binding_{};
};

}  // namespace ringlet
