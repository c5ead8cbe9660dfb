#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ringlet/status.hpp>

#include "core/base/bytes.hpp"

namespace ringlet {

/// Each side of a connection opens its handshake (core/rendezvous/handshake.hpp) with magic "RNGL", version (u16), flags (u16).
inline constexpr std::size_t kPrefaceBytes = 8;
/// What a preface begins with, and no HTTP request.
inline constexpr std::array<std::byte, 4> kPrefaceMagic{std::byte{'R'}, std::byte{'N'}, std::byte{'G'}, std::byte{'L'}};
inline constexpr std::uint16_t kWireVersion = 3;

/// What a frame carries. Append only.
enum class FrameKind : std::uint8_t {
  control = 1,    // a Protobuf message ControlMessage (proto/control.proto)
  call = 2,       // a collective's fingerprint: "I have started it, you may send all of it"
  data = 3,       // a part of a collective's transfer number `transfer`, from `offset` on
  offer = 4,      // point to point, sender: the message's dtype and shape
  accept = 5,     // point to point, receiver: matched, send it
  refuse = 6,     // point to point, receiver: not what I receive; the payload says what I do
  message = 7,    // point to point: a part of the message
  heartbeat = 8,  // still here
  goodbye = 9,    // this rank leaves the world; nothing follows
  leave = 10,     // this rank leaves the group; nothing of that group follows
};

/// Fixed, little-endian, 32 bytes: payload_bytes u32, kind u8, flags u8, stream u16, group u32, transfer u32, sequence u64, offset u64.
struct FrameHeader {
  std::uint32_t payload_bytes = 0;
  FrameKind kind = FrameKind::heartbeat;
  std::uint8_t flags = 0;
  std::uint16_t stream = 0;
  std::uint32_t group = 0;     // the receiver's number of the group; 0 is the world
  std::uint32_t transfer = 0;  // which of the sender's sends to this peer in this collective
  std::uint64_t sequence = 0;  // of the operation in its stream, or of the message in its direction
  std::uint64_t offset = 0;    // of the payload in the transfer

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline constexpr std::size_t kFrameHeaderBytes = 32;
/// The sender has already sent the whole message behind this offer.
inline constexpr std::uint8_t kFlagEager = 1;

/// Whether frames of this kind belong to the operations of a group.
constexpr bool is_of_operation(FrameKind kind) { return kind >= FrameKind::call && kind <= FrameKind::message; }

/// Largest payload of a data or message frame, and of any other frame.
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
/// `in` has kPrefaceBytes. `protocol_error` where the magic or the version is another.
Status check_preface(const std::byte* in);

void encode(const FrameHeader& header, std::byte* out);
/// `in` has kFrameHeaderBytes. `protocol_error` for an unknown kind or a payload over its limit; nothing is trusted before this.
Status decode(const std::byte* in, FrameHeader& header);

}  // namespace ringlet
