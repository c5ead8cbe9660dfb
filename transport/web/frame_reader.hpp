#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"

namespace ringlet::web {

/// The reason in a WebSocket's closing frame (RFC 6455, 7.4.1).
enum class CloseCode : std::uint16_t {
  normal = 1000,
  protocol_error = 1002,
  unsupported_data = 1003,
  none = 1005,  // stands for a closing frame without a code; never sent
  invalid_text = 1007,
  policy = 1008,
  too_big = 1009,
};

/// Sets out[i] to masked[i] XOR the mask's byte for position `offset` + i. The two have the same size and do not overlap.
void unmask(ConstBytes masked, Bytes out, const std::array<std::byte, 4>& key, std::uint64_t offset);

/// Reads a client's frames and checks that they keep to RFC 6455. Binary messages are one stream of bytes, which is never collected here;
/// control frames and text messages are collected up to a bound.
class FrameReader {
 public:
  enum class Found : std::uint8_t {
    nothing,    // the input is used up
    payload,    // bytes of a binary message follow: take_payload()
    ping,       // a ping: control_payload() is the payload for the pong
    close,      // the peer's last frame, with close_code()
    violation,  // close_code() is for the peer, violation() for people; next() must not be called again
  };

  explicit FrameReader(std::uint64_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  /// Reads further from `input`, and removes the bytes that it has used.
  Found next(ConstBytes& input);
  /// May only be called after `payload`: unmasks as many bytes from `input` to `out` as both and the payload have, and returns their
  /// number.
  std::size_t take_payload(ConstBytes& input, Bytes out);
  /// The number of bytes of the current frame's payload that are still to come.
  std::uint64_t payload_left() const { return payload_left_; }
  /// Whether the last byte that was read was the last one of a message.
  bool between_messages() const { return head_size_ == 0 && payload_left_ == 0 && message_ == Message::none; }

  ConstBytes control_payload() const { return ConstBytes(control_).first(control_size_); }
  CloseCode close_code() const { return close_code_; }
  const std::string& violation() const { return violation_; }

 private:
  enum class Message : std::uint8_t { none, binary, text };

  std::size_t head_needed() const;
  bool fill_head(ConstBytes& input);
  Found begin_frame();
  void end_frame();
  std::size_t copy_payload(ConstBytes& input, Bytes out);
  Found check_first_bytes();
  Found take_control(ConstBytes& input);
  Found end_close();
  Found take_text(ConstBytes& input);
  Found refuse(CloseCode code, std::string why);

  bool fin() const { return (std::to_integer<unsigned>(head_[0]) & 0x80U) != 0; }
  unsigned opcode() const { return std::to_integer<unsigned>(head_[0]) & 0x0fU; }
  bool is_control() const { return (opcode() & 0x8U) != 0; }
  unsigned short_length() const { return std::to_integer<unsigned>(head_[1]) & 0x7fU; }

  const std::uint64_t max_message_bytes_;
  std::array<std::byte, 14> head_{};
  std::size_t head_size_ = 0;
  bool in_frame_ = false;  // the head is complete, the payload is not
  std::array<std::byte, 4> key_{};
  std::uint64_t payload_left_ = 0;
  std::uint64_t payload_taken_ = 0;
  Message message_ = Message::none;  // the message under way; kept between its frames, too
  std::uint64_t message_bytes_ = 0;
  std::array<std::byte, 125> control_{};
  std::size_t control_size_ = 0;
  std::vector<std::byte> text_;
  CloseCode close_code_ = CloseCode::none;
  std::string violation_;
};

}  // namespace ringlet::web
