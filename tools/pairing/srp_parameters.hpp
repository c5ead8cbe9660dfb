#pragma once

#include <botan/bigint.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::pairing {

// Nothing is derived from the name: what tells groups and machines apart stands in the transcript.
inline const std::string kSrpName = "ringlet pair", kSrpGroup = "modp/srp/3072", kSrpHash = "SHA-256";

/// Botan's verifier of a code; its name differs between Botan 2 and 3.
Botan::BigInt make_srp_verifier(const std::string& code, const std::vector<std::uint8_t>& salt);

}  // namespace ringlet::pairing
