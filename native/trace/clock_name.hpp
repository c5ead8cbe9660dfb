#pragma once

#include <string>

namespace ringlet::native {

/// A text that processes have in common whose monotonic clocks are the same one: this start of this machine. Empty where the system does
/// not say.
std::string name_of_this_clock();

}  // namespace ringlet::native
