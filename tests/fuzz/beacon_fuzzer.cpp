#include <cstdlib>

#include "tools/discovery/directory.hpp"

using namespace ringlet;
using namespace ringlet::discovery;

namespace {
ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
}  // namespace

// The input is datagrams that one directory gets. Each follows two bytes of its length and one of its sender, and time passes between them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t known = 0;
  Directory directory([&](Change change, const Machine&) { known += change == Change::appeared ? 1
                                                                    : change == Change::left   ? -1
                                                                                               : 0; },
                      {.machines = 8, .machines_per_address = 3, .departed = 4});
  Instant now;
  while (size >= 3) {
    const std::size_t length = std::min<std::size_t>(size - 3, data[0] | data[1] << 8);
    const std::byte sender[4] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(data[2])};
    // Half of the datagrams get the beginning of a beacon, which the fuzzer would take long to guess.
    std::string datagram(data[2] < 128 ? std::string("RNGB\x01") : std::string());
    datagram.append(reinterpret_cast<const char*>(data + 3), length);
    data += 3 + length;
    size -= 3 + length;
    now = now + Duration::milliseconds(400);
    directory.expire(now);
    directory.ask_silent(now);
    const auto beacon = decode_beacon(bytes_of(datagram));
    if (!beacon) continue;
    const std::string again = encode_beacon(*beacon);
    if (again.size() > kMaxBeaconBytes || decode_beacon(bytes_of(again)) != beacon) std::abort();
    directory.take(*beacon, {*IpAddress::from_bytes(sender), 1, 0, 0}, now);
    if (directory.machines().size() != known || known > 8) std::abort();
    for (const auto& [instance, machine] : directory.machines())
      if (machine.sightings.empty() || machine.sightings.size() > kMaxSightings) std::abort();
  }
  return 0;
}
