#pragma once

#include <string_view>

namespace ringlet::launch {

/// A deputy writes this first; its launcher passes over whatever a login prints before it.
inline constexpr std::string_view kGreeting = "\x01ringlet-deputy\n";

/// `ringlet internal-deputy`: starts and watches the ranks of one host for a launcher elsewhere, which speaks to it over its standard input
/// and output. When that one is gone, or silent for a minute, it ends them. Returns the exit code, once no process of the ranks is left.
int run_deputy();

}  // namespace ringlet::launch
