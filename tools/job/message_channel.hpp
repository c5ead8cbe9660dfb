#pragma once

#include <cstddef>
#include <functional>
#include <ringlet/status.hpp>
#include <string>

#include "core/ports/link.hpp"
#include "tools/job/messages.hpp"

namespace ringlet::job {

/// One end of a conversation between the process that runs a job and one of its machines, whatever carries it. Belongs to the loop's
/// thread; it may be destroyed inside its callbacks, which drops what was not sent.
class MessageChannel {
 public:
  using OnMessage = std::function<void(Message)>;
  /// The other end is gone: it closed the channel, the connection broke, it was silent for too long, or it sent what is no message. At most
  /// once; no message comes after it.
  using OnLost = std::function<void(const Status&)>;

  virtual ~MessageChannel() = default;
  /// To be called once. The callbacks run on the loop, never inside a call that the user makes. Beats are not handed on.
  virtual void start(OnMessage on_message, OnLost on_lost) = 0;
  /// Does nothing once the other end is gone.
  virtual void send(const Message& message) = 0;
  /// The bytes that send() was given and the other end has not taken.
  virtual std::size_t unsent_bytes() const = 0;
  /// The other end was told to end its ranks: from now on a shorter silence counts as its loss.
  virtual void expect_end() {}
  /// The other end's address, for people.
  virtual std::string peer_name() const = 0;
  /// The binding of the link that it is on; all zero where no handshake made that.
  virtual LinkBinding binding() const { return {}; }
};

}  // namespace ringlet::job
