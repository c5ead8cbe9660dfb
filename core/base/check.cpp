#include "core/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace ringlet::detail {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "ringlet: broken invariant: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace ringlet::detail
