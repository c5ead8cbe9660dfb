#include <cstdint>
#include <cstdlib>

#include "tools/job/messages.hpp"

using namespace ringlet;

// Bytes from the other end of a job: they are refused, or are a message that comes out of our own encoding as it went in.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = job::decode(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  const std::string again = job::encode(*message);
  const auto back = job::decode(std::as_bytes(std::span(again)));
  if (!back || *back != *message) std::abort();
  return 0;
}
