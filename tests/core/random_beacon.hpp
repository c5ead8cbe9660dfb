#pragma once

#include <string>

#include "sim/sim_random.hpp"
#include "tools/discovery/beacon.hpp"

namespace ringlet::test {

inline std::string random_letters(SimRandom& random, std::size_t limit) {
  std::string text(random.below(4) == 0 ? random.below(limit + 1) : random.below(6), 'x');
  for (char& letter : text) letter = static_cast<char>('a' + random.below(26));
  return text;
}

inline IpAddress random_address(SimRandom& random) {
  std::array<std::byte, 16> bytes{};
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
  bytes[0] = static_cast<std::byte>(1 + random.below(200));
  return *IpAddress::from_bytes(ConstBytes(bytes).first(random.below(2) == 0 ? 4 : 16));
}

/// Returns a random beacon, which may be any that can be sent.
inline discovery::Beacon random_beacon(SimRandom& random) {
  const auto number = [&] { return random.below(3) == 0 ? 0 : random.next() >> random.below(64); };
  discovery::Beacon beacon;
  beacon.kind = static_cast<discovery::Beacon::Kind>(random.below(3));
  beacon.instance = 1 + random.below(UINT64_MAX);
  beacon.sequence = number();
  auto& profile = beacon.profile;
  profile.name = random_letters(random, discovery::kMaxNameBytes);
  profile.version = random_letters(random, discovery::kMaxLabelBytes);
  profile.group = random_letters(random, discovery::kMaxNameBytes);
  profile.epoch = number();
  profile.port = static_cast<std::uint16_t>(number());
  for (auto count = random.below(discovery::kMaxDevices + 1); count > 0; --count)
    profile.devices.push_back({random_letters(random, discovery::kMaxLabelBytes), static_cast<std::uint32_t>(number()), number(), number(),
                               random_letters(random, discovery::kMaxLabelBytes)});
  std::size_t room = discovery::kMaxAddresses;
  for (auto count = random.below(discovery::kMaxInterfaces + 1); count > 0; --count) {
    NetworkInterface interface{random_letters(random, discovery::kMaxLabelBytes), {}};
    for (auto addresses = random.below(std::min<std::size_t>(room, 4) + 1); addresses > 0; --addresses, --room)
      interface.addresses.push_back(random_address(random));
    profile.interfaces.push_back(std::move(interface));
  }
  profile.pairing_port = static_cast<std::uint16_t>(number());
  for (auto count = random.below(3); count > 0; --count) beacon.known.push_back(random_address(random));
  return beacon;
}

}  // namespace ringlet::test
