#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/address.hpp"

namespace ringlet::native {

inline constexpr int kMaxWorldSize = 1024;

/// Parses a hostfile: a JSON list with one list of "host:port" per rank, which is MLX's format. Throws `InvalidArgument` with file, rank
/// and reason.
std::vector<std::vector<Address>> parse_hostfile(const std::string& path, std::string_view text);

}  // namespace ringlet::native
