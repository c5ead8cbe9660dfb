#pragma once

#include <openssl/crypto.h>
#include <openssl/err.h>

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

/// Throws where OpenSSL has just said that it does not have an algorithm: see fetch_algorithm().
[[noreturn]] void refuse_algorithm(std::string_view name, std::string_view instead);

/// Returns what `fetch` does, which asks OpenSSL for an algorithm. Throws `InvalidArgument` where OpenSSL does not offer it, as where it is
/// restricted to FIPS; `instead` is what does without.
template <class Fetch>
auto fetch_algorithm(Fetch fetch, std::string_view name, std::string_view instead) {
  needs_openssl();
  ERR_clear_error();
  auto* algorithm = fetch();
  if (algorithm == nullptr) refuse_algorithm(name, instead);
  return algorithm;
}

}  // namespace ringlet
