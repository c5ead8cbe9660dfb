#include "tools/launch/standard_error.hpp"

#include <cstdio>

namespace ringlet::launch {

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace ringlet::launch
