#pragma once

#include <cstddef>

namespace ringlet {

/// Bytes as OpenSSL's functions take them.
inline const unsigned char* unsigned_chars(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
inline unsigned char* unsigned_chars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace ringlet
