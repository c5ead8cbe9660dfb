#pragma once

#include <cstddef>

namespace ringlet {

/// Bytes in the type that OpenSSL's functions take.
inline const unsigned char* unsigned_chars(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
inline unsigned char* unsigned_chars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace ringlet
