#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/core/seeds.hpp"
#include "tools/pairing/host_session.hpp"
#include "tools/pairing/newcomer_session.hpp"

namespace ringlet::test {

inline ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Returns the distance from one try to the next where all tries would take long; slow builds take larger ones.
inline std::size_t stride_of(std::size_t stride) { return stride * 100 / share_of(100); }

/// A host and a newcomer, and what they send to each other.
struct Talk {
  using HostStage = pairing::HostSession::Stage;
  using NewcomerStage = pairing::NewcomerSession::Stage;

  explicit Talk(const std::string& typed = "48217305") : newcomer_code(typed) {}

  pairing::Secret code{"48217305"}, token{"2k4x-the-token-of-the-group"}, newcomer_code;
  const pairing::PairedMachine attic{"attic", std::string(pairing::kMachineKeyBytes, 'h')};
  const pairing::PairedMachine cellar{"cellar", std::string(pairing::kMachineKeyBytes, 'n')};
  pairing::HostSession host{"home", attic, code, token, pairing::fill_random};
  pairing::NewcomerSession newcomer{"home", cellar, newcomer_code};

  bool newcomer_has_token() const { return newcomer.token().view() == token.view(); }
  /// Returns what the newcomer sends next. A newcomer that has the token confirms it first.
  std::string newcomer_says() {
    if (newcomer.stage() == NewcomerStage::delivered) newcomer.confirm();
    return newcomer.take_outgoing();
  }
  std::string host_says() { return host.take_outgoing(); }
  void run() {
    // Round 0 is hello and challenge, round 1 answer and delivery, round 2 the receipt.
    for (int round = 0; round < 3; ++round) {
      host.receive(bytes_of(newcomer_says()));
      newcomer.receive(bytes_of(host_says()));
    }
  }
};

}  // namespace ringlet::test
