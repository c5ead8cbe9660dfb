#include "wasm/cpp/browser_authenticator.hpp"

#include "wasm/cpp/imports.hpp"

namespace ringlet::browser {

Proof BrowserAuthenticator::sign(ConstBytes message) {
  Proof proof;
  ringlet_sign(token_.data(), token_.size(), message.data(), message.size(), proof.data());
  return proof;
}

void BrowserAuthenticator::fill_random(Bytes out) { ringlet_random(out.data(), out.size()); }

}  // namespace ringlet::browser
