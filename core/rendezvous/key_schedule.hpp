#pragma once

#include "core/ports/authenticator.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

/// One key for each direction of a link, and the link's binding, from which neither follows.
struct TrafficKeys {
  Key from_dialler{}, from_acceptor{};
  LinkBinding binding{};

  TrafficKeys() = default;
  TrafficKeys(const TrafficKeys&) = delete;
  TrafficKeys& operator=(const TrafficKeys&) = delete;
  ~TrafficKeys() {
    wipe(from_dialler);
    wipe(from_acceptor);
  }
};

/// HKDF-SHA-256 (RFC 5869): extracts with `salt` from the secret that the two sides have agreed on, and expands with a text for each
/// direction and for the binding.
void derive_keys(Authenticator& authenticator, const Key& salt, const Key& agreed, TrafficKeys& keys);

/// Replaces a cipher's key by one that follows from it, and from which it does not follow: the first 32 bytes of 32 zero bytes that are
/// sealed with the counter 2^64 - 1 (REKEY of the Noise Protocol Framework, revision 34, section 4.2).
void renew_key(Cipher& cipher);

}  // namespace ringlet
