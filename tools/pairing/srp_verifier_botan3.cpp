#include <botan/srp6.h>

#include "tools/pairing/srp_parameters.hpp"

namespace ringlet::pairing {

Botan::BigInt make_srp_verifier(const std::string& code, const std::vector<std::uint8_t>& salt) {
  return Botan::srp6_generate_verifier(kSrpName, code, salt, kSrpGroup, kSrpHash);
}

}  // namespace ringlet::pairing
