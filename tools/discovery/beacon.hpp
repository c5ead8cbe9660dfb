#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "tools/discovery/datagrams.hpp"

// These are the messages of proto/beacon.proto as values.
namespace ringlet::discovery {

/// A beacon of this size fits into one datagram on any network without fragmentation.
inline constexpr std::size_t kMaxBeaconBytes = 1'200;
inline constexpr std::size_t kMaxNameBytes = 64;   // of a machine or a group
inline constexpr std::size_t kMaxLabelBytes = 32;  // of a device's version, kind and instruction set, and of an interface's name
inline constexpr std::size_t kMaxDevices = 4;
inline constexpr std::size_t kMaxInterfaces = 8;
inline constexpr std::size_t kMaxAddresses = 16;  // of all interfaces together
inline constexpr std::size_t kMaxKnown = 16;

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
  std::uint16_t port = 0;  // for TCP connections; 0 if the machine accepts none
  std::vector<Device> devices;
  std::vector<NetworkInterface> interfaces;
  std::uint16_t pairing_port = 0;  // if not 0, the machine is not up in the group, but gives its token at this port in return for a code
  friend bool operator==(const Profile&, const Profile&) = default;
};

struct Beacon {
  enum class Kind : std::uint8_t { presence = 0, query = 1, goodbye = 2 };
  Kind kind = Kind::presence;
  std::uint64_t instance = 0;
  std::uint64_t sequence = 0;
  Profile profile{};
  std::vector<IpAddress> known{};  // where the sender hears other machines, of which it tells who asked it
  friend bool operator==(const Beacon&, const Beacon&) = default;
};

/// Returns `profile` within the limits above. Texts are truncated between characters and lose characters that cannot be shown. Interfaces,
/// addresses and devices beyond the limits are left out, and so are addresses that do not belong to a single machine.
Profile limited(Profile profile);

/// Returns the datagram, at most kMaxBeaconBytes long. The profile is limited first.
std::string encode_beacon(const Beacon& beacon);
/// Returns the datagram with padding up to about `bytes`, never more, so that an answer may be as long. A longer beacon gets no padding.
std::string encode_padded(const Beacon& beacon, std::size_t bytes = kMaxBeaconBytes);
/// Returns nothing if the bytes are not a beacon, its version or kind is unknown, anything exceeds the limits, a text is not UTF-8 or has
/// control characters, or an address does not belong to a single machine.
std::optional<Beacon> decode_beacon(ConstBytes datagram);

}  // namespace ringlet::discovery
