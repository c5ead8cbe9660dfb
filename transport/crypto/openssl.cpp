#include "transport/crypto/openssl.hpp"

#include <openssl/evp.h>

#include <string>

#include "core/base/refuse.hpp"

namespace ringlet {

void refuse_algorithm(std::string_view name, std::string_view instead) {
  // For want of memory it says that it does not know the algorithm, too, after the true reason, if it has the memory to say anything.
  bool is_unknown = false, has_memory = true;
  while (const unsigned long error = ERR_get_error()) {
    const int reason = ERR_GET_REASON(error);
    is_unknown = is_unknown || reason == ERR_R_UNSUPPORTED || reason == EVP_R_UNSUPPORTED_ALGORITHM;
    has_memory = has_memory && reason != ERR_R_MALLOC_FAILURE;
  }
  needs_memory(is_unknown && has_memory);
  refuse("OpenSSL on this machine does not offer " + std::string(name) + ", as where it is restricted to FIPS; " + std::string(instead));
}

}  // namespace ringlet
