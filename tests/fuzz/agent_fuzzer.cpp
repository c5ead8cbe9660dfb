#include <cstdint>
#include <cstdlib>

#include "tools/job/messages.hpp"

using namespace ringlet;

// The input is a message from the other end of a job. It is refused, or it is unchanged after encoding and decoding once more.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = job::decode(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  const std::string again = job::encode(*message);
  const auto back = job::decode(std::as_bytes(std::span(again)));
  if (!back || *back != *message) std::abort();
  return 0;
}
