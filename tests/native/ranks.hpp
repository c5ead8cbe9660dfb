#pragma once

#include <functional>
#include <ringlet/ringlet.hpp>

#include "native/shared_group.hpp"

namespace ringlet::test {

/// Runs `body` as every rank of a world over loopback TCP, one thread each, and rethrows the first exception. `configure` may change a
/// rank's options before it meets the others.
void run_ranks(int size, const std::function<void(Group&)>& body, const std::function<void(native::WorldConfig&)>& configure = {});

}  // namespace ringlet::test
