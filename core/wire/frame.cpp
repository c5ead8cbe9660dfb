#include "core/wire/frame.hpp"

#include <string>

namespace ringlet {

namespace {}

std::array<std::byte, kPrefaceBytes> encode_preface() {
  std::array<std::byte, kPrefaceBytes> out{};
  std::memcpy(out.data(), kPrefaceMagic.data(), kPrefaceMagic.size());
  detail::store_le<std::uint16_t>(out.data() + 4, kWireVersion);
  return out;
}

Status check_preface(const std::byte* in) {
  if (std::memcmp(in, kPrefaceMagic.data(), kPrefaceMagic.size()) != 0)
    return {Errc::protocol_error, "the other side does not speak Ringlet's protocol; check that address and port belong to a rank"};
  const auto version = detail::load_le<std::uint16_t>(in + 4);
  if (version != kWireVersion)
    return {Errc::protocol_error, "the other side speaks version " + std::to_string(version) + " of the protocol, this rank version " +
                                      std::to_string(kWireVersion) + "; install the same Ringlet on both"};
  if (detail::load_le<std::uint16_t>(in + 6) != 0)
    return {Errc::protocol_error, "the other side's preface asks for options that this version does not know"};
  return {};
}

void encode(const FrameHeader& header, std::byte* out) {
  detail::store_le(out, header.payload_bytes);
  out[4] = static_cast<std::byte>(header.kind);
  out[5] = static_cast<std::byte>(header.flags);
  detail::store_le(out + 6, header.stream);
  detail::store_le(out + 8, header.group);
  detail::store_le(out + 12, header.transfer);
  detail::store_le(out + 16, header.sequence);
  detail::store_le(out + 24, header.offset);
}

Status decode(const std::byte* in, FrameHeader& header) {
  header.payload_bytes = detail::load_le<std::uint32_t>(in);
  const auto kind = static_cast<std::uint8_t>(in[4]);
  header.kind = static_cast<FrameKind>(kind);
  header.flags = static_cast<std::uint8_t>(in[5]);
  header.stream = detail::load_le<std::uint16_t>(in + 6);
  header.group = detail::load_le<std::uint32_t>(in + 8);
  header.transfer = detail::load_le<std::uint32_t>(in + 12);
  header.sequence = detail::load_le<std::uint64_t>(in + 16);
  header.offset = detail::load_le<std::uint64_t>(in + 24);
  if (kind < static_cast<std::uint8_t>(FrameKind::control) || kind > static_cast<std::uint8_t>(FrameKind::leave))
    return {Errc::protocol_error, "frame of unknown kind " + std::to_string(kind)};
  const bool bulk = header.kind == FrameKind::data || header.kind == FrameKind::message;
  const std::uint32_t limit = bulk ? kMaxDataPayload : kMaxControlPayload;
  if (header.payload_bytes > limit)
    return {Errc::protocol_error,
            "frame of " + std::to_string(header.payload_bytes) + " bytes; at most " + std::to_string(limit) + " are allowed"};
  return {};
}

}  // namespace ringlet
