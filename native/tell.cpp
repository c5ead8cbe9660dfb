#include "native/tell.hpp"

#include <cstdio>

namespace ringlet::native {

void tell(int rank, const std::string& text) { tell("rank " + std::to_string(rank) + ": " + text); }

void tell(const std::string& text) {
  const std::string line = "ringlet: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace ringlet::native
