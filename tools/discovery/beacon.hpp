#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "tools/discovery/datagrams.hpp"

// proto/beacon.proto is the definition; these are its messages as values.
namespace ringlet::discovery {

/// A beacon fits into one datagram on any network, unfragmented.
inline constexpr std::size_t kMaxBeaconBytes = 1'200;
inline constexpr std::size_t kMaxNameBytes = 64;   // of a machine, of a group
inline constexpr std::size_t kMaxLabelBytes = 32;  // version, kind and instruction set of a device, name of an interface
inline constexpr std::size_t kMaxDevices = 4;
inline constexpr std::size_t kMaxInterfaces = 8;
inline constexpr std::size_t kMaxAddresses = 16;  // of all interfaces together

struct Device {
  std::string kind;
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_memory_bytes = 0;
  std::string simd;
  friend bool operator==(const Device&, const Device&) = default;
};

/// The contents of a machine's beacon.
struct Profile {
  std::string name;
  std::string version;
  std::string group;
  std::uint64_t epoch = 0;
  std::uint16_t port = 0;  // at which it takes TCP connections; 0: it takes none
  std::vector<Device> devices;
  std::vector<NetworkInterface> interfaces;
  std::uint16_t pairing_port = 0;  // not 0: the machine is not up in the group, but gives the group's token away at this port, by a code
  friend bool operator==(const Profile&, const Profile&) = default;
};

struct Beacon {
  enum class Kind : std::uint8_t { presence = 0, query = 1, goodbye = 2 };
  Kind kind = Kind::presence;
  std::uint64_t instance = 0;
  std::uint64_t sequence = 0;
  Profile profile{};
  friend bool operator==(const Beacon&, const Beacon&) = default;
};

/// `profile` within the limits above: texts are cut between characters and lose characters that cannot be shown; interfaces, addresses and
/// devices beyond the limits are left out, and so are addresses that do not belong to a single machine.
Profile limited(Profile profile);

/// The datagram, at most kMaxBeaconBytes; the profile is limited first.
std::string encode_beacon(const Beacon& beacon);
/// The same with padding up to about `bytes`, never more, so that an answer may be as long. A beacon that is longer anyway gets none.
std::string encode_padded(const Beacon& beacon, std::size_t bytes = kMaxBeaconBytes);
/// Returns nothing where the bytes are not a beacon, where its version or kind is unknown, where anything exceeds the limits, where a text
/// is not UTF-8 or has control characters, and where an address does not belong to a single machine.
std::optional<Beacon> decode_beacon(ConstBytes datagram);

}  // namespace ringlet::discovery
