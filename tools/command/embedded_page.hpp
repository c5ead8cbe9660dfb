#pragma once

#include <cstddef>
#include <span>

namespace ringlet::command {

/// Returns the packed page that this binary was built with, or nothing if no page existed then.
std::span<const std::byte> embedded_page();

}  // namespace ringlet::command
