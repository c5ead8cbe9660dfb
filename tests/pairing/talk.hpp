#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/core/seeds.hpp"
#include "tools/pairing/host_session.hpp"
#include "tools/pairing/newcomer_session.hpp"

namespace ringlet::test {

inline ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// From one try to the next where all would take long: further in slow builds.
inline std::size_t stride_of(std::size_t stride) { return stride * 100 / share_of(100); }

/// A host and a newcomer, and what they say to each other.
struct Talk {
  using HostStage = pairing::HostSession::Stage;
  using NewcomerStage = pairing::NewcomerSession::Stage;

  explicit Talk(const std::string& typed = "48217305") : newcomer_code(typed) {}

  pairing::Secret code{"48217305"}, token{"2k4x-the-token-of-the-group"}, newcomer_code;
  pairing::HostSession host{"home", "attic", code, token, pairing::fill_random};
  pairing::NewcomerSession newcomer{"home", "cellar", newcomer_code};

  bool newcomer_has_token() const { return newcomer.token().view() == token.view(); }
  /// Hands the newcomer's words on, and back the host's. `round` 0: hello and challenge; 1: answer and delivery; 2: receipt.
  std::string newcomer_says() {
    if (newcomer.stage() == NewcomerStage::delivered) newcomer.confirm();
    return newcomer.take_outgoing();
  }
  std::string host_says() { return host.take_outgoing(); }
  void run() {
    for (int round = 0; round < 3; ++round) {
      host.receive(bytes_of(newcomer_says()));
      newcomer.receive(bytes_of(host_says()));
    }
  }
};

}  // namespace ringlet::test
