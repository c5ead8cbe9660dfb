#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"

// A class is a Network if it passes all of network_cases(). To check one, derive a NetworkPair, link ringlet_conformance, and write
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

/// Two endpoints that can reach each other. Both may use one loop.
class NetworkPair {
 public:
  virtual ~NetworkPair() = default;
  virtual EventLoop& loop(std::size_t side) = 0;
  virtual Network& network(std::size_t side) = 0;
  /// Returns an address with port 0 at which this side can listen and which the other side can reach.
  virtual Address any_port(std::size_t side) = 0;
  /// Runs both loops until `condition` holds. Returns false where it does not within a bound that every correct run keeps.
  virtual bool drive(const std::function<bool()>& condition) = 0;
  /// Destroys the side's network. network(side) is not called again.
  virtual void destroy_network(std::size_t side) = 0;
};

struct Case {
  std::string name;
  std::function<void(NetworkPair&)> run;
};

/// Returns all cases. Each of them needs a fresh pair.
std::vector<Case> network_cases();

std::vector<Case> loop_cases();
std::vector<Case> dial_cases();
std::vector<Case> link_cases();
std::vector<Case> closing_cases();

}  // namespace ringlet::conformance
