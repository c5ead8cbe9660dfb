#include <atomic>
#include <ringlet/group.hpp>

#include "native/environment.hpp"
#include "native/world.hpp"

namespace ringlet {

Group::Group() : world_(std::make_shared<native::World>(native::make_world_config({}, [](std::string_view) { return std::nullopt; }))) {}

bool is_available(std::string_view backend) noexcept { return backend == "any" || backend == "tcp"; }

Group init(const InitOptions& options) {
  native::WorldConfig config = native::make_world_config(options, native::process_variable);
  // The inherited socket serves once; a second group listens at the address itself.
  static std::atomic<bool> taken{false};
  if (config.listening_descriptor && taken.exchange(true)) config.listening_descriptor.reset();
  return Group(std::make_shared<native::World>(config));
}

}  // namespace ringlet
