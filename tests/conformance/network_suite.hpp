#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"

// What makes a class a Network: it passes all of network_cases(). To check one, derive a NetworkPair, link ringlet_conformance, and write
//
//   TEST_CASE("tcp conforms") {
//     for (const auto& test : conformance::network_cases()) {
//       DYNAMIC_SECTION(test.name) {
//         TcpPair pair;
//         test.run(pair);
//       }
//     }
//   }

namespace ringlet::conformance {

/// Two endpoints that can reach each other. Both may stand on one loop.
class NetworkPair {
 public:
  virtual ~NetworkPair() = default;
  virtual EventLoop& loop(std::size_t side) = 0;
  virtual Network& network(std::size_t side) = 0;
  /// Where a listener of that side can listen, with port 0, so that the other side reaches it.
  virtual Address any_port(std::size_t side) = 0;
  /// Runs both loops until `condition` holds; false where it does not within a bound that no correct run meets.
  virtual bool drive(const std::function<bool()>& condition) = 0;
  /// Destroys the side's network; network(side) is not asked for again.
  virtual void destroy_network(std::size_t side) = 0;
};

struct Case {
  std::string name;
  std::function<void(NetworkPair&)> run;
};

/// All cases, each for a fresh pair.
std::vector<Case> network_cases();

std::vector<Case> loop_cases();
std::vector<Case> dial_cases();
std::vector<Case> link_cases();
std::vector<Case> closing_cases();

}  // namespace ringlet::conformance
