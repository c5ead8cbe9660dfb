#pragma once

#include <openssl/crypto.h>

#include <cstddef>
#include <new>

namespace ringlet {

/// Bytes in the type that OpenSSL's functions take.
inline const unsigned char* unsigned_chars(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
inline unsigned char* unsigned_chars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

/// Throws where a function of OpenSSL has failed that fails only for want of memory.
inline void needs_memory(bool succeeded) {
  if (!succeeded) throw std::bad_alloc();
}

/// Throws where OpenSSL could not prepare itself for want of memory. What needs it then reads a null pointer.
inline void needs_openssl() { needs_memory(OSSL_LIB_CTX_get0_global_default() != nullptr); }

}  // namespace ringlet
