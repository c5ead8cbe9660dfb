#include "tests/conformance/network_suite.hpp"

namespace ringlet::conformance {

std::vector<Case> network_cases() {
  std::vector<Case> all;
  for (const auto& family : {loop_cases(), dial_cases(), link_cases(), closing_cases()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace ringlet::conformance
