#pragma once

#include <memory>
#include <ringlet/status.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ringlet {

/// What uses a link. The link pulls what is to be sent and asks where to put what it receives, so no byte is copied between the two.
/// All calls come from the loop's thread, never inside a call that the user makes on the link.
class LinkUser {
 public:
  /// Parts to send now, in order; empty when there is nothing. Borrowed until sent() has counted them, to_send() is asked anew, the user
  /// calls Link::recall(), or the link is gone.
  virtual std::span<const ConstBytes> to_send() = 0;
  /// The first `bytes` of the parts have left (or are copied); 0 never occurs.
  virtual void sent(std::size_t bytes) = 0;
  /// Where the next bytes go, in order: at most two parts. Asked anew after each received(). Nothing: the link receives no more, and leaves
  /// what comes to the peer's patience, until the next wake(); it may tell of a failure meanwhile, but not of the peer's end.
  virtual std::span<const Bytes> to_receive() = 0;
  /// `bytes` (> 0) have been put into the parts of the last to_receive(), filling them in order.
  virtual void received(std::size_t bytes) = 0;
  /// The peer has ended its direction in order: nothing more will be received. Sending may go on. At most once.
  virtual void receive_ended() = 0;
  /// The link broke (reset, I/O error). Nothing is called after this. At most once.
  virtual void link_failed(const Status& status) = 0;

 protected:
  ~LinkUser() = default;
};

/// An ordered, reliable byte pipe to one peer. Belongs to the loop's thread. Destruction closes it at once, drops what was not sent, and
/// ends all calls to the user; it is allowed inside a call to the user.
class Link {
 public:
  virtual ~Link() = default;
  /// Begins to call `user`, which outlives the link or is followed by another: called again, also inside received() or sent(), the link
  /// leaves the user that it had and calls it no more. No byte is lost or doubled; what the former user had given and what had not left
  /// stays unsent. Where the peer has ended its direction, the new user is told, too. Not after link_failed(), and wake() follows as ever.
  virtual void start(LinkUser& user) = 0;
  /// There may be something to send, or room to receive: the link asks soon, after the current callback, as often as the peer takes it.
  virtual void wake() = 0;
  /// Ends this direction once to_send() has run empty. Receiving goes on. Later wakes send nothing.
  virtual void finish_sending() = 0;
  /// What to_send() has lent is about to go. The link keeps a copy of what it still needs, the first so many bytes of the parts, which
  /// leave as if sent() had counted them: it will not. 0 for a link that takes bytes only inside its own calls.
  virtual std::size_t recall() { return 0; }
  /// How many bytes it would rather be handed at once, since it lends them all before the peer takes any; 0: as few as keep it busy.
  virtual std::size_t wanted_batch_bytes() const { return 0; }
  /// For people: "127.0.0.1:40123".
  virtual std::string peer_name() const = 0;
  /// This end's, as the peer's peer_name() has it where nothing between the two translates; empty where it is not known.
  virtual std::string own_name() const { return {}; }
  /// What carries the bulk of the bytes: "tcp", "memory".
  virtual std::string_view medium() const { return "tcp"; }
};

}  // namespace ringlet
