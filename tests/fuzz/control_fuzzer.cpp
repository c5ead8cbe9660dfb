#include <cstdint>
#include <cstdlib>

#include "core/wire/control.hpp"

using namespace ringlet;

// What a peer sends as a control message: it is refused, or it is a message that comes out of our own encoding as it went in.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = wire::decode_control(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  const std::string again = wire::encode_control(*message);
  const auto back = wire::decode_control(std::as_bytes(std::span(again)));
  if (!back || *back != *message) std::abort();
  return 0;
}
