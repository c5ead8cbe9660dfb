#pragma once

#include <botan/bigint.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::pairing {

// SRP's user name is a constant, because the transcript already tells groups and machines apart.
inline const std::string kSrpName = "ringlet pair", kSrpGroup = "modp/srp/3072", kSrpHash = "SHA-256";

/// Returns Botan's verifier of a code. Its function has another name in Botan 2 than in Botan 3.
Botan::BigInt make_srp_verifier(const std::string& code, const std::vector<std::uint8_t>& salt);

}  // namespace ringlet::pairing
