#pragma once

#include <string>

#include "core/ports/authenticator.hpp"
#include "tools/tokens/saved_token.hpp"

namespace ringlet::tokens {

/// The token of a named group: RINGLET_TOKEN's or RINGLET_TOKEN_FILE's, else the one that is saved for it (tools/tokens/saved_token.hpp).
/// Empty where there is none. Throws `InvalidArgument` with what to do where one is there and cannot be used, or the name cannot be.
std::string find_token(const std::string& group, const Variables& variables);

/// A fresh token of 140 random bits, in groups that a person can copy: "2k4x-…".
std::string make_token(Authenticator& authenticator);

}  // namespace ringlet::tokens
