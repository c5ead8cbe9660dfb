#include "native/checkpoint/checksum.hpp"

// xxHash is compiled in, so that programs which link Ringlet need no further library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

namespace ringlet::native {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) { XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size()); }

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string checksum_of(std::string_view text) {
  Checksum sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.hex();
}

}  // namespace ringlet::native
