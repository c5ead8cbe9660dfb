#pragma once

// Each public header includes this file first, so that an older compiler's first error names what is missing.
#if __cplusplus < 202002L
#error "Ringlet needs C++20: in CMake link the target Ringlet::ringlet, which asks for it; elsewhere compile with -std=c++20"
#endif
