#include <uv.h>

#include <fstream>
#include <string>

#include "tools/command/available_memory.hpp"

namespace ringlet::command {

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return uv_get_free_memory();
}

}  // namespace ringlet::command
