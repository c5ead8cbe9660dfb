#include "tools/pairing/conversation.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::pairing {

namespace {

constexpr std::string_view kGreeting{"RNGP\x02", 5};
constexpr std::size_t kLengthBytes = 2;

std::string little_endian(std::size_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>((number >> (8 * i)) & 0xff);
  return text;
}

}  // namespace

void Conversation::receive(ConstBytes bytes) {
  while (!over_ && !bytes.empty()) {
    const std::size_t room = kGreeting.size() + kLengthBytes + kMaxMessageBytes - incoming_.size();
    const ConstBytes part = bytes.first(std::min(room, bytes.size()));
    incoming_.append(reinterpret_cast<const char*>(part.data()), part.size());
    bytes = bytes.subspan(part.size());
    while (!over_ && read_message()) continue;
  }
}

bool Conversation::read_message() {
  if (!was_greeted_) {
    const std::size_t known = std::min(incoming_.size(), kGreeting.size());
    if (incoming_.compare(0, known, kGreeting, 0, known) != 0) refuse();
    if (over_ || known < kGreeting.size()) return false;
    incoming_.erase(0, kGreeting.size());
    was_greeted_ = true;
  }
  if (incoming_.size() < kLengthBytes) return false;
  const std::size_t length = static_cast<unsigned char>(incoming_[0]) + 256U * static_cast<unsigned char>(incoming_[1]);
  if (length > kMaxMessageBytes) {
    refuse();
    return false;
  }
  if (incoming_.size() < kLengthBytes + length) return false;
  const std::string bytes = incoming_.substr(kLengthBytes, length);
  incoming_.erase(0, kLengthBytes + length);
  if (const auto message = decode(bytes))
    on_message(*message, bytes);
  else
    refuse();
  return true;
}

void Conversation::refuse() {
  over_ = true;
  on_nonsense();
}

std::string Conversation::take_outgoing() { return std::exchange(outgoing_, {}); }

std::string Conversation::say(const Message& message) {
  if (!std::exchange(greeted_, true)) outgoing_ += kGreeting;
  std::string bytes = encode(message);
  outgoing_ += little_endian(bytes.size(), kLengthBytes) + bytes;
  return bytes;
}

void Conversation::note(std::string_view said) {
  transcript_ += little_endian(said.size(), sizeof(std::uint32_t));
  transcript_ += said;
}

}  // namespace ringlet::pairing
