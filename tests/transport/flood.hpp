#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ringlet::test {

/// Opens `count` connections to a port of the loopback, sixty at a time, none of which is a rank's: rubbish, nothing at all, resets, half a
/// handshake, false proofs, HTTP, TLS, and `recorded`, with which another connection once began. Returns false where one cannot be made or
/// is not thrown out for rubbish, or as soon as `goes_on` returns false.
bool flood(std::uint16_t port, int count, const std::string& recorded = {}, const std::function<bool()>& goes_on = {});

}  // namespace ringlet::test
