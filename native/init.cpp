#include <ringlet/group.hpp>

#include "native/environment.hpp"
#include "native/world.hpp"

namespace ringlet {

Group::Group() : world_(std::make_shared<native::World>(native::make_world_config({}, [](std::string_view) { return std::nullopt; }))) {}

bool is_available(std::string_view backend) noexcept { return backend == "any" || backend == "tcp"; }

Group init(const InitOptions& options) {
  return Group(std::make_shared<native::World>(native::make_world_config(options, native::process_variable)));
}

}  // namespace ringlet
