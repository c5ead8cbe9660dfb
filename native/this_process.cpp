#include "native/this_process.hpp"

#include <uv.h>

#include <array>
#include <climits>
#include <random>

namespace ringlet::native {

std::string machine_name() {
  std::array<char, UV_MAXHOSTNAMESIZE> text{};
  std::size_t length = text.size();
  if (uv_os_gethostname(text.data(), &length) != 0) return {};
  const std::string name(text.data(), length);
  return name.substr(0, name.find('.'));
}

std::uint64_t random_world_id() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) | source();
}

namespace {

std::string program_name() {
  std::array<char, PATH_MAX> path{};
  std::size_t length = path.size();
  if (uv_exepath(path.data(), &length) != 0) return {};
  const std::string name(path.data(), length);
  return name.substr(name.rfind('/') + 1);
}

}  // namespace

Identity this_process() { return {machine_name(), program_name(), static_cast<std::uint32_t>(uv_os_getpid())}; }

}  // namespace ringlet::native
