#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "tools/pairing/message.hpp"

namespace ringlet::pairing {

/// The common part of both sides of a pairing: it takes and gives bytes, and has messages in between. It uses neither sockets nor clocks.
/// The other side can make it store at most one message.
class Conversation {
 public:
  virtual ~Conversation() = default;
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// Takes received bytes, split at any place. Ignores them once the conversation is over.
  void receive(ConstBytes bytes);
  /// Returns the bytes to be sent, in order. Each byte is returned once.
  std::string take_outgoing();
  /// Tells whether the conversation is over, so that received bytes are ignored.
  bool over() const noexcept { return over_; }

 protected:
  Conversation() = default;
  /// `bytes` are those of the message as received, borrowed for the call.
  virtual void on_message(const Message& message, std::string_view bytes) = 0;
  /// Called if the received bytes are not a message of this protocol. The conversation is over then.
  virtual void on_nonsense() = 0;
  /// Adds the message to those to be sent and returns its bytes.
  std::string say(const Message& message);
  void end() noexcept { over_ = true; }
  void note(std::string_view said);
  const std::string& transcript() const noexcept { return transcript_; }

 private:
  /// Returns whether a whole message was there.
  bool read_message();
  void refuse();

  std::string incoming_;  // at most a message with its length, and what came with its end
  std::string outgoing_;
  std::string transcript_;
  bool greeted_ = false;
  bool was_greeted_ = false;
  bool over_ = false;
};

}  // namespace ringlet::pairing
