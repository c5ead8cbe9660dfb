#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tools/launch/hosts/messages.hpp"
#include "tools/launch/launch_error.hpp"

using namespace ringlet::launch;

namespace {

using Messages = std::vector<std::pair<MessageKind, std::string>>;

/// Returns a message's body, without the head that `encode` puts before it and, before a hello, the greeting.
std::string_view body_in(std::string_view message) {
  const std::size_t greeting = message.find(kGreeting) == 0 ? kGreeting.size() : 0;
  return message.substr(greeting + kMessageHead);
}

/// Checks that a body which is understood is unchanged after encoding it, decoding it and encoding it again.
template <class Parse, class Encode>
void check_round_trip(std::string_view body, Parse parse, Encode encode_again) {
  std::string once;
  try {
    once = encode_again(parse(body));
  } catch (const LaunchError&) {
    return;
  }
  if (encode_again(parse(body_in(once))) != once) std::abort();
}

void check_body(MessageKind kind, std::string_view body) {
  const auto again = [](const auto& value) { return encode(value); };
  switch (kind) {
    case MessageKind::hello:
      return check_round_trip(body, parse_hello, again);
    case MessageKind::job:
      return check_round_trip(body, parse_job, again);
    case MessageKind::refused:
      return check_round_trip(body, parse_refusal, again);
    case MessageKind::exit:
      return check_round_trip(body, parse_exit, again);
    case MessageKind::output:
      return check_round_trip(body, parse_output, again);
    case MessageKind::stop:
      return check_round_trip(body, parse_stop, again);
    default:
      return check_round_trip(
          body, [](std::string_view bytes) { return parse_number(bytes, kMaxPort); },
          [kind](int number) { return encode_number(kind, number); });
  }
}

Messages read(std::string_view bytes, bool greeted, std::size_t piece) {
  Messages messages;
  MessageReader reader(greeted);
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      reader.feed(bytes.substr(0, piece), [&](MessageKind kind, std::string_view body) { messages.emplace_back(kind, body); });
  } catch (const LaunchError&) {
  }
  return messages;
}

}  // namespace

// The input is what a launcher or its deputy is told. In whatever pieces it comes, its messages are the same, each refused or understood.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool greeted = data[0] % 2 != 0;
  const Messages messages = read(bytes, greeted, bytes.size());
  if (read(bytes, greeted, std::size_t{1} + data[0] / 2) != messages) std::abort();
  for (const auto& [kind, body] : messages) check_body(kind, body);
  return 0;
}
