#include <cstdint>
#include <cstdlib>

#include "tests/core/victim.hpp"

using namespace ringlet;
using namespace ringlet::test;

// The input is what a rank of two sends once it has joined, while the other has every sort of operation under way. Each of them must end
// exactly once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script;
  script.join().add(std::as_bytes(std::span(data, size)));
  Victim victim(1, script.bytes());
  if (!victim.group.met(0) || !victim.group.met(0)->ok()) std::abort();
  victim.start_operations();
  if (!victim.run()) std::abort();
  for (const Outcome* outcome : victim.outcomes)
    if (outcome->completions != 1) std::abort();
  return 0;
}
