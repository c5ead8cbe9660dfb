#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "core/base/result.hpp"

namespace ringlet::native {

struct InputLimits {
  std::size_t most_bytes = 1 << 20;
  std::chrono::milliseconds longest_silence{30'000};  // of a pipe, which may have no writer
  std::function<bool()> interrupted{};                // asked ten times a second while it waits; empty: never
};

/// Reads a file that a person has named, to its end. It may also be a pipe, as a shell's `<(command)` and /dev/stdin are. `io_error` with
/// the reason alone, such as "No such file or directory"; `cancelled` where it is interrupted.
Result<std::string> read_input_file(const std::string& path, const InputLimits& limits = {});

}  // namespace ringlet::native
