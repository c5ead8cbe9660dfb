#pragma once

#include <memory>

#include "core/ports/authenticator.hpp"

namespace ringlet {

/// AES-256-GCM by a library that is faster at it than OpenSSL is, or null where this program has none for this processor. What it seals
/// OpenSSL opens.
std::unique_ptr<Cipher> make_fast_aes(const Key& key);

}  // namespace ringlet
