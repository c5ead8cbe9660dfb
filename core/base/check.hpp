#pragma once

namespace ringlet::detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

/// Stops the process if an invariant of the library is broken, since training on with wrong gradients is worse than a crash. It is never
/// used for errors that a caller or a peer can cause.
#define RINGLET_CHECK(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::ringlet::detail::check_failed(#condition, __FILE__, __LINE__))
