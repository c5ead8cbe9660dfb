#pragma once

#include <cstddef>
#include <span>

namespace ringlet::command {

/// The packed page that this binary was built with; empty where none had been built before it.
std::span<const std::byte> embedded_page();

}  // namespace ringlet::command
