#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "tools/pairing/message.hpp"

namespace ringlet::pairing {

/// What both sides of a pairing have in common: bytes in, bytes out, messages between. Knows neither sockets nor time. What the other side
/// may make it keep is bounded by one message.
class Conversation {
 public:
  virtual ~Conversation() = default;
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// What came, cut anywhere. Ignored once it is over.
  void receive(ConstBytes bytes);
  /// What is to be sent, in order; each byte once.
  std::string take_outgoing();
  /// Nothing that comes matters any more.
  bool over() const noexcept { return over_; }

 protected:
  Conversation() = default;
  /// `bytes` are the message's, as they came; borrowed for the call.
  virtual void on_message(const Message& message, std::string_view bytes) = 0;
  /// What came is no message of this protocol; it is over.
  virtual void on_nonsense() = 0;
  /// Returns its bytes.
  std::string say(const Message& message);
  void end() noexcept { over_ = true; }
  void note(std::string_view said);
  const std::string& transcript() const noexcept { return transcript_; }

 private:
  /// Whether a whole message was there.
  bool read_message();
  void refuse();

  std::string incoming_;  // at most a message, its length, and what came with its end
  std::string outgoing_;
  std::string transcript_;
  bool greeted_ = false;
  bool was_greeted_ = false;
  bool over_ = false;
};

}  // namespace ringlet::pairing
