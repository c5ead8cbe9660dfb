#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <ringlet/group.hpp>
#include <string>

#include "core/base/refuse.hpp"
#include "native/environment.hpp"
#include "native/joining.hpp"
#include "native/scheduler.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

Group form(const native::WorldConfig& config) {
  auto group = std::make_shared<native::SharedGroup>(std::make_shared<native::NativeWorld>(config));
  if (config.first_guests == 0) return Group(std::move(group));
  return Group(native::await_first_guests(std::move(group), config.first_guests, config.meeting.timeout));
}

[[noreturn]] void refuse_without_descriptors(const std::string& name) {
  throw IoError({Errc::io_error, name + ": no descriptor is left; allow this process more (ulimit -n)"});
}

/// Every group that this process forms meets at the inherited sockets. Each gets a duplicate, and connections that come between two groups
/// wait in the socket's backlog.
void duplicate(std::optional<int>& descriptor, const char* variable) {
  if (!descriptor) return;
  const int inherited = *descriptor;
  descriptor = ::fcntl(inherited, F_DUPFD_CLOEXEC, 0);
  if (*descriptor < 0 && errno == EMFILE) refuse_without_descriptors(variable);
  if (*descriptor < 0)
    refuse(std::string(variable) + " is '" + std::to_string(inherited) +
           "', which is not an open descriptor here; what `ringlet launch` starts has to become this program (exec), or to pass its "
           "descriptors on (in Python: subprocess.run(..., close_fds=False))");
  ::fcntl(inherited, F_SETFD, FD_CLOEXEC);
}

/// A duplicate of the caller's socket, which stays as it is.
int listening_duplicate(int given) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(given, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    refuse("the option listen_fd is " + std::to_string(given) + ", which is not a socket that listens");
  const int copy = ::fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) refuse_without_descriptors("the option listen_fd");
  return copy;
}

}  // namespace

Group::Group() : Group(form(native::make_world_config({}, [](std::string_view) { return std::nullopt; }))) {}

bool is_available(std::string_view backend) noexcept { return backend == "any" || backend == "tcp"; }

Group init(const InitOptions& options) {
  native::WorldConfig config = native::make_world_config(options, native::process_variables(options));
  if (config.listening_descriptor && options.listen_fd)
    config.listening_descriptor = listening_duplicate(*options.listen_fd);
  else
    duplicate(config.listening_descriptor, "RINGLET_COORDINATOR_FD");
  duplicate(config.door_options.descriptor, "RINGLET_DOOR_FD");
  duplicate(config.door_options.page_socket, "RINGLET_PAGE_SOCKET_FD");
  if (config.given_membership && config.given_membership->is_here()) config.membership_descriptor = config.given_membership->number;
  duplicate(config.membership_descriptor, "RINGLET_MEMBERSHIP_FD");
  return config.join.empty() ? form(config) : Group(native::join_group(std::move(config)));
}

}  // namespace ringlet
