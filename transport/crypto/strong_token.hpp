#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ringlet {

/// The number of random bytes of which make_strong_token() makes a token.
inline constexpr std::size_t kStrongTokenBytes = 28;

/// Writes kStrongTokenBytes random bytes, of which 5 bits count each, as a token: "4n7x-0c5r-...", seven groups of four.
std::string make_strong_token(ConstBytes random);

/// Returns `token` itself if it has the form of make_strong_token(), and otherwise one of that form which scrypt (RFC 7914) makes of it.
/// Whoever records a handshake can try tokens that people make up on any number of machines; each try then costs 32 MiB and a tenth of a
/// second instead of a microsecond. The npm package does the same (wasm/src/core/strong_token.ts). Throws `std::bad_alloc` where there is
/// no memory for that, and `InvalidArgument` where OpenSSL offers no scrypt.
std::string strong_token(std::string_view token);

}  // namespace ringlet
