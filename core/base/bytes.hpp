#pragma once

#include <cstddef>
#include <span>

namespace ringlet {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

}  // namespace ringlet
