#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/address.hpp"

namespace ringlet::native {

inline constexpr int kMaxWorldSize = 1024;

/// A JSON list with one list of "host:port" per rank, MLX's format. Throws `InvalidArgument` with file, rank and reason.
std::vector<std::vector<Address>> parse_hostfile(const std::string& path, std::string_view text);

}  // namespace ringlet::native
