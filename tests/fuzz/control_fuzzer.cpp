#include <cstdint>
#include <cstdlib>

#include "core/wire/control.hpp"

using namespace ringlet;

// The input is a control message of a peer. It is refused, or it is unchanged after encoding and decoding once more.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = wire::decode_control(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  const std::string again = wire::encode_control(*message);
  const auto back = wire::decode_control(std::as_bytes(std::span(again)));
  if (!back || *back != *message) std::abort();
  return 0;
}
