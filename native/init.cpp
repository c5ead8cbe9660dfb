#include <fcntl.h>

#include <ringlet/group.hpp>
#include <string>

#include "native/environment.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

Group form(const native::WorldConfig& config) {
  return Group(std::make_shared<native::SharedGroup>(std::make_shared<native::NativeWorld>(config)));
}

}  // namespace

Group::Group() : Group(form(native::make_world_config({}, [](std::string_view) { return std::nullopt; }))) {}

bool is_available(std::string_view backend) noexcept { return backend == "any" || backend == "tcp"; }

Group init(const InitOptions& options) {
  native::WorldConfig config = native::make_world_config(options, native::process_variable);
  if (config.listening_descriptor) {
    // Every group that this process forms meets at the inherited socket. Each gets a duplicate of it, and connections that come between two
    // groups wait in the socket's backlog.
    const int inherited = *config.listening_descriptor;
    config.listening_descriptor = ::fcntl(inherited, F_DUPFD_CLOEXEC, 0);
    if (*config.listening_descriptor < 0)
      throw InvalidArgument({Errc::invalid_argument, "RINGLET_COORDINATOR_FD is '" + std::to_string(inherited) +
                                                         "', which is not an open descriptor; it is set by `ringlet launch` only"});
    ::fcntl(inherited, F_SETFD, FD_CLOEXEC);
  }
  return form(config);
}

}  // namespace ringlet
