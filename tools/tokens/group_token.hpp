#pragma once

#include <string>

#include "core/ports/authenticator.hpp"
#include "tools/tokens/saved_token.hpp"

namespace ringlet::tokens {

/// Returns the token of a named group: that of RINGLET_TOKEN or RINGLET_TOKEN_FILE, else the saved one (tools/tokens/saved_token.hpp).
/// Returns an empty text if there is none. Throws `InvalidArgument` with what to do if a token exists but cannot be used, or if the name is
/// not allowed.
std::string find_token(const std::string& group, const Variables& variables);

/// Returns a fresh token of 140 random bits, in groups that people can copy: "2k4x-…".
std::string make_token(Authenticator& authenticator);

}  // namespace ringlet::tokens
