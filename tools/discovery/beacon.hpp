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

/// What a machine says of itself.
struct Profile {
  std::string name;
  std::string version;
  std::string group;
  std::uint64_t epoch = 0;
  std::uint16_t port = 0;  // where it takes TCP connections; 0: nowhere
  std::vector<Device> devices;
  std::vector<NetworkInterface> interfaces;
  std::uint16_t pairing_port = 0;  // not 0: it is not up in the group, but hands the group's token on there, by a code
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

/// `profile` within the limits above: texts are cut between characters and lose what cannot be shown, interfaces, addresses and devices
/// beyond the limits are left out, as are addresses that are not one machine's.
Profile limited(Profile profile);

/// The datagram, at most kMaxBeaconBytes; the profile is limited first.
std::string encode_beacon(const Beacon& beacon);
/// The same, filled up to about `bytes` (and no more, unless it is longer by itself), so that an answer may be as long.
std::string encode_padded(const Beacon& beacon, std::size_t bytes = kMaxBeaconBytes);
/// Nothing where the bytes are not a beacon, are of another version or of a kind that this version does not know, or where anything is
/// beyond the limits, a text is not UTF-8 or has control characters, or an address is not one machine's.
std::optional<Beacon> decode_beacon(ConstBytes datagram);

}  // namespace ringlet::discovery
