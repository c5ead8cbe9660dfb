#include "transport/web/frame_reader.hpp"

#include <utf8.h>

#include <algorithm>
#include <cstring>

namespace ringlet::web {

namespace {

constexpr unsigned kContinuation = 0x0, kText = 0x1, kBinary = 0x2, kClose = 0x8, kPing = 0x9, kPong = 0xa;
// Text messages are always refused. They are collected only to tell invalid UTF-8, which has a closing code of its own.
constexpr std::size_t kMaxTextBytes = 4096;

std::uint64_t big_endian(ConstBytes bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes) value = (value << 8) | std::to_integer<std::uint64_t>(byte);
  return value;
}

bool is_utf8(ConstBytes bytes) {
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  return utf8::is_valid(begin, begin + bytes.size());
}

bool may_be_sent(std::uint64_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

}  // namespace

void unmask(ConstBytes masked, Bytes out, const std::array<std::byte, 4>& key, std::uint64_t offset) {
  std::array<std::byte, 8> turned;
  for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = key[(offset + i) % key.size()];
  std::uint64_t wide_key;
  std::memcpy(&wide_key, turned.data(), sizeof wide_key);
  std::size_t done = 0;
  for (; done + sizeof wide_key <= masked.size(); done += sizeof wide_key) {
    std::uint64_t word;
    std::memcpy(&word, masked.data() + done, sizeof word);
    word ^= wide_key;
    std::memcpy(out.data() + done, &word, sizeof word);
  }
  for (; done < masked.size(); ++done) out[done] = masked[done] ^ turned[done % turned.size()];
}

FrameReader::Found FrameReader::next(ConstBytes& input) {
  for (;;) {
    if (!in_frame_) {
      if (!fill_head(input)) return violation_.empty() ? Found::nothing : Found::violation;
      if (const auto found = begin_frame(); found != Found::nothing) return found;
    }
    Found found = Found::nothing;
    if (is_control()) {
      found = take_control(input);
    } else if (message_ == Message::text) {
      found = take_text(input);
    } else if (payload_left_ > 0) {
      return input.empty() ? Found::nothing : Found::payload;
    }
    if (payload_left_ == 0) end_frame();
    if (found != Found::nothing || in_frame_) return found;
  }
}

void FrameReader::end_frame() {
  in_frame_ = false;
  head_size_ = 0;
  if (!is_control() && fin()) message_ = Message::none;
}

std::size_t FrameReader::head_needed() const {
  if (head_size_ < 2) return 2;
  const std::size_t length_bytes = short_length() == 126 ? 2 : short_length() == 127 ? 8 : 0;
  return 2 + length_bytes + key_.size();
}

/// Returns false if the head is not complete yet, or if its first two bytes break the protocol.
bool FrameReader::fill_head(ConstBytes& input) {
  while (head_size_ < head_needed()) {
    if (input.empty()) return false;
    head_[head_size_++] = input.front();
    input = input.subspan(1);
    if (head_size_ == 2 && check_first_bytes() == Found::violation) return false;
  }
  return true;
}

FrameReader::Found FrameReader::check_first_bytes() {
  if ((std::to_integer<unsigned>(head_[0]) & 0x70U) != 0) return refuse(CloseCode::protocol_error, "a frame with reserved bits set");
  if (opcode() != kContinuation && opcode() != kText && opcode() != kBinary && (opcode() < kClose || opcode() > kPong))
    return refuse(CloseCode::protocol_error, "a frame with the unknown opcode " + std::to_string(opcode()));
  if ((std::to_integer<unsigned>(head_[1]) & 0x80U) == 0) return refuse(CloseCode::protocol_error, "a frame that is not masked");
  if (is_control()) {
    if (!fin()) return refuse(CloseCode::protocol_error, "a control frame in fragments");
    if (short_length() > 125) return refuse(CloseCode::protocol_error, "a control frame of more than 125 bytes");
  } else if ((opcode() == kContinuation) != (message_ != Message::none)) {
    return refuse(CloseCode::protocol_error, message_ == Message::none ? "the continuation of no message" : "a message inside another one");
  }
  return Found::nothing;
}

FrameReader::Found FrameReader::begin_frame() {
  const ConstBytes head = ConstBytes(head_).first(head_size_);
  std::copy_n(head.end() - key_.size(), key_.size(), key_.begin());
  const ConstBytes long_length = head.subspan(2, head_size_ - 2 - key_.size());
  payload_left_ = long_length.empty() ? short_length() : big_endian(long_length);
  payload_taken_ = 0;
  in_frame_ = true;
  const std::uint64_t least = long_length.empty() ? 0 : long_length.size() == 2 ? 126 : 65536;
  if (payload_left_ < least || payload_left_ >> 63 != 0)
    return refuse(CloseCode::protocol_error, "a frame whose length is written wrongly");
  if (is_control()) {
    control_size_ = 0;
    return Found::nothing;
  }
  if (opcode() != kContinuation) {
    message_ = opcode() == kText ? Message::text : Message::binary;
    message_bytes_ = 0;
    text_.clear();
  }
  const std::uint64_t limit = message_ == Message::text ? std::min<std::uint64_t>(kMaxTextBytes, max_message_bytes_) : max_message_bytes_;
  if (payload_left_ > limit - message_bytes_)
    return refuse(CloseCode::too_big, "a message of more than " + std::to_string(limit) + " bytes");
  message_bytes_ += payload_left_;
  return Found::nothing;
}

std::size_t FrameReader::take_payload(ConstBytes& input, Bytes out) {
  const std::size_t count = copy_payload(input, out);
  if (count > 0 && payload_left_ == 0) end_frame();
  return count;
}

std::size_t FrameReader::copy_payload(ConstBytes& input, Bytes out) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, std::min(input.size(), out.size())));
  unmask(input.first(count), out.first(count), key_, payload_taken_);
  input = input.subspan(count);
  payload_left_ -= count;
  payload_taken_ += count;
  return count;
}

FrameReader::Found FrameReader::take_control(ConstBytes& input) {
  control_size_ += copy_payload(input, Bytes(control_).subspan(control_size_));
  if (payload_left_ > 0) return Found::nothing;
  if (opcode() == kPing) return Found::ping;
  return opcode() == kClose ? end_close() : Found::nothing;
}

FrameReader::Found FrameReader::end_close() {
  close_code_ = CloseCode::none;
  if (control_size_ == 0) return Found::close;
  if (control_size_ == 1) return refuse(CloseCode::protocol_error, "a closing frame with half a code");
  const auto code = big_endian(control_payload().first(2));
  if (!may_be_sent(code)) return refuse(CloseCode::protocol_error, "a closing frame with the code " + std::to_string(code));
  if (!is_utf8(control_payload().subspan(2))) return refuse(CloseCode::invalid_text, "a closing frame whose reason is not UTF-8");
  close_code_ = static_cast<CloseCode>(code);
  return Found::close;
}

FrameReader::Found FrameReader::take_text(ConstBytes& input) {
  const std::size_t before = text_.size();
  text_.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, input.size())));
  copy_payload(input, Bytes(text_).subspan(before));
  if (payload_left_ > 0 || !fin()) return Found::nothing;
  if (!is_utf8(text_)) return refuse(CloseCode::invalid_text, "text that is not UTF-8");
  return refuse(CloseCode::unsupported_data, "text, where only binary messages are understood");
}

FrameReader::Found FrameReader::refuse(CloseCode code, std::string why) {
  close_code_ = code;
  violation_ = std::move(why);
  return Found::violation;
}

}  // namespace ringlet::web
