#include <catch2/catch.hpp>

#include "tests/transport/uv_pair.hpp"

using namespace ringlet;
using namespace ringlet::test;

TEST_CASE("uv conforms") {
  const bool two_loops = GENERATE(false, true);
  const Address any_port{GENERATE(as<std::string>{}, "127.0.0.1", "::1"), 0};
  for (const auto& test : conformance::network_cases()) {
    DYNAMIC_SECTION(test.name << (two_loops ? ", two loops, " : ", one loop, ") << any_port.host) {
      UvPair pair(two_loops, any_port);
      test.run(pair);
    }
  }
}
