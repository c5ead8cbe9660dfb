#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/init_options.hpp>
#include <string>

#include "native/setting.hpp"
#include "native/trace/trace_file.hpp"

namespace ringlet::native {

/// Where a process writes its trace.
struct TraceSettings {
  std::string file{};                           // of RINGLET_TRACE or InitOptions::trace; empty: none
  std::string variable{};                       // RINGLET_TRACE if that named the file, for messages
  std::optional<GivenDescriptor> given_file{};  // RINGLET_TRACE_FD; comes before `file`
  std::size_t most_bytes = 256 << 20;
  int rank = 0;
  std::uint32_t joined_in_epoch = 0;
};

/// Without the rank and the epoch, which are known later. Throws `InvalidArgument` that names a setting, its value, and what is possible.
TraceSettings read_trace_settings(const InitOptions& options, const Variables& variables);

}  // namespace ringlet::native
