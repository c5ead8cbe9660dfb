#include <uv.h>

#include "tools/command/available_memory.hpp"

namespace ringlet::command {

std::uint64_t available_memory() { return uv_get_free_memory(); }

}  // namespace ringlet::command
