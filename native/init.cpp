#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <ringlet/group.hpp>
#include <string>
#include <utility>

#include "core/base/refuse.hpp"
#include "native/environment.hpp"
#include "native/joining.hpp"
#include "native/scheduler.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

Group form(const native::WorldConfig& config, const native::WorldStart& start, native::MeetingSockets sockets) {
  auto world = std::make_shared<native::NativeWorld>(config, start, std::move(sockets));
  auto group = std::make_shared<native::SharedGroup>(std::move(world));
  if (config.first_guests == 0) return Group(std::move(group));
  return Group(native::await_first_guests(std::move(group), config.first_guests, config.meeting.timeout));
}

[[noreturn]] void refuse_without_descriptors(const std::string& name) {
  throw IoError({Errc::io_error, name + ": no descriptor is left; allow this process more (ulimit -n)"});
}

/// Every group that this process forms has the inherited sockets and files. Each gets a duplicate, and connections that come between two
/// groups wait in the socket's backlog.
UniqueFd duplicate(const std::optional<int>& inherited, const char* variable) {
  if (!inherited) return {};
  UniqueFd own(::fcntl(*inherited, F_DUPFD_CLOEXEC, 0));
  if (!own && errno == EMFILE) refuse_without_descriptors(variable);
  if (!own)
    refuse(std::string(variable) + " is '" + std::to_string(*inherited) +
           "', which is not an open descriptor here; what `ringlet launch` starts has to become this program (exec), or to pass its "
           "descriptors on (in Python: subprocess.run(..., close_fds=False))");
  ::fcntl(*inherited, F_SETFD, FD_CLOEXEC);
  return own;
}

/// A duplicate of the caller's socket, which stays as it is.
UniqueFd listening_duplicate(int given) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(given, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    refuse("the option listen_fd is " + std::to_string(given) + ", which is not a socket that listens");
  UniqueFd copy(::fcntl(given, F_DUPFD_CLOEXEC, 0));
  if (!copy) refuse_without_descriptors("the option listen_fd");
  return copy;
}

native::WorldSockets take_sockets(const native::WorldConfig& config, const InitOptions& options) {
  const native::GivenSockets& given = config.given;
  native::WorldSockets own;
  own.meeting.listener =
      given.listener && options.listen_fd ? listening_duplicate(*options.listen_fd) : duplicate(given.listener, "RINGLET_COORDINATOR_FD");
  own.door.listener = duplicate(given.door, "RINGLET_DOOR_FD");
  own.door.page = duplicate(given.page_socket, "RINGLET_PAGE_SOCKET_FD");
  native::WebFiles& web = config.options.elastic ? own.door.web : own.meeting.web;
  web.page = duplicate(given.page, "RINGLET_PAGE_FD");
  if (given.presence) web.presence = given.presence->duplicate();
  if (given.membership) own.membership = given.membership->duplicate();
  return own;
}

}  // namespace

Group::Group() : Group(form(native::make_world_config({}, [](std::string_view) { return std::nullopt; }), {}, {})) {}

bool is_available(std::string_view backend) noexcept { return backend == "any" || backend == "tcp"; }

Group init(const InitOptions& options) {
  native::WorldConfig config = native::make_world_config(options, native::process_variables(options));
  native::WorldSockets sockets = take_sockets(config, options);
  native::WorldStart start = native::make_start(config, std::move(sockets.door), std::move(sockets.membership));
  if (config.join.empty()) return form(config, start, std::move(sockets.meeting));
  return Group(native::join_group(std::move(config), std::move(start)));
}

}  // namespace ringlet
