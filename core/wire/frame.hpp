#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ringlet/status.hpp>

#include "core/base/bytes.hpp"

namespace ringlet {

/// Each side of a connection begins its handshake (core/rendezvous/handshake.hpp) with magic "RNGL", version (u16), flags (u16).
inline constexpr std::size_t kPrefaceBytes = 8;
/// The first bytes of a preface; no HTTP request begins with them.
inline constexpr std::array<std::byte, 4> kPrefaceMagic{std::byte{'R'}, std::byte{'N'}, std::byte{'G'}, std::byte{'L'}};
inline constexpr std::uint16_t kWireVersion = 9;

/// The content of a frame. The numbers are part of the wire format: append only.
enum class FrameKind : std::uint8_t {
  control = 1,    // a Protobuf message ControlMessage (proto/control.proto)
  call = 2,       // a collective's fingerprint; its sender has started it and can take all of its data
  data = 3,       // a part of a collective's transfer number `transfer`, from `offset` on
  offer = 4,      // point to point, sender: the message's dtype and shape
  accept = 5,     // point to point, receiver: the receive is posted, send the message
  refuse = 6,     // point to point, receiver: the receive differs; the payload has its dtype and shape
  message = 7,    // point to point: a part of the message
  heartbeat = 8,  // shows that this rank is alive
  goodbye = 9,    // this rank leaves the world; nothing follows
  leave = 10,     // this rank leaves the group; nothing of that group follows
};

/// The header of a frame, little-endian, 32 bytes: payload_bytes u32, kind u8, flags u8, stream u16, group u32, transfer u32, sequence u64,
/// offset u64.
struct FrameHeader {
  std::uint32_t payload_bytes = 0;
  FrameKind kind = FrameKind::heartbeat;
  std::uint8_t flags = 0;
  std::uint16_t stream = 0;
  std::uint32_t group = 0;     // the receiver's number of the group; 0 is the world
  std::uint32_t transfer = 0;  // index of the send among the sender's sends to this peer in this collective
  std::uint64_t sequence = 0;  // number of the operation in its stream, or of the message in its direction
  std::uint64_t offset = 0;    // position of the payload in the transfer

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline constexpr std::size_t kFrameHeaderBytes = 32;
/// Flag of an offer: the whole message follows at once, without waiting for `accept`.
inline constexpr std::uint8_t kFlagEager = 1;

/// Whether frames of this kind belong to the operations of a group.
constexpr bool is_of_operation(FrameKind kind) { return kind >= FrameKind::call && kind <= FrameKind::message; }

/// The largest payload of a data or message frame, and of any other frame.
inline constexpr std::uint32_t kMaxDataPayload = 16u << 20;
inline constexpr std::uint32_t kMaxControlPayload = 1u << 20;

namespace detail {
template <class T>
void store_le(std::byte* out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}
template <class T>
T load_le(const std::byte* in) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | static_cast<T>(static_cast<T>(in[i]) << (8 * i)));
  return value;
}
}  // namespace detail

std::array<std::byte, kPrefaceBytes> encode_preface();
/// Reads kPrefaceBytes from `in`. Returns `protocol_error` if the magic or the version differs.
Status check_preface(const std::byte* in);

void encode(const FrameHeader& header, std::byte* out);
/// Reads kFrameHeaderBytes from `in`. Returns `protocol_error` for an unknown kind or a payload over its limit; no field is trusted before
/// this check.
Status decode(const std::byte* in, FrameHeader& header);

}  // namespace ringlet
