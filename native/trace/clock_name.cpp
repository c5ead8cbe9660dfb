#include "native/trace/clock_name.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

namespace ringlet::native {

std::string name_of_this_clock() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  if (!std::getline(file, name) || name.empty()) return {};
  // A container may have a clock with an offset of its own.
  std::array<char, 64> target{};
  if (::readlink("/proc/self/ns/time", target.data(), target.size() - 1) > 0) name += std::string(" ") + target.data();
  return name;
}

}  // namespace ringlet::native
