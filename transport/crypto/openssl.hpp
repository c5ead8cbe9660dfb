#pragma once

#include <openssl/crypto.h>

#include <cstddef>
#include <new>
#include <string_view>

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

/// Throws `InvalidArgument` where OpenSSL does not offer an algorithm, as where it is restricted to FIPS; `instead` is what does without.
/// To be called right after the call that asked for it.
void needs_algorithm(bool is_offered, std::string_view name, std::string_view instead);

}  // namespace ringlet
