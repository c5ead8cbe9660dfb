#pragma once

namespace ringlet::detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

/// Stops the process where an invariant of our own is broken: wrong gradients that train on are worse than a crash.
/// Never for what a caller or a peer can cause.
#define RINGLET_CHECK(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::ringlet::detail::check_failed(#condition, __FILE__, __LINE__))
