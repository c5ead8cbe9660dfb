#include "tools/launch/coordinator_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/uv/socket.hpp"

namespace ringlet::launch {

namespace {

constexpr int kBacklog = 128;

std::string describe(const job::BindPort& where, int error) {
  if (error == EADDRINUSE) return "it is in use by another program; choose another port, or 0 for any that is free";
  if (error == EADDRNOTAVAIL) return "it is not an address of this machine; choose one that is, or 0.0.0.0 for all";
  if (error == EACCES) return fmt::format("this user may not use port {}; choose one above 1023", where.port);
  return std::strerror(error);
}

/// A socket that is bound but does not listen. Where it fails, the reason is in errno, or in the result.
Result<UniqueFd> bind_at(const job::BindPort& where) {
  const auto addresses = uv::numeric_addresses({where.host, static_cast<std::uint16_t>(where.port)});
  if (addresses.empty()) return Status(Errc::invalid_argument, "it is no numeric address; give one of this machine's, or 0.0.0.0 for all");
  const uv::SocketAddress& address = addresses.front();
  UniqueFd socket(::socket(address.family(), SOCK_STREAM, 0));
  const int on = 1;
  // Without SO_REUSEADDR a port that was in use a moment ago would be refused.
  if (!socket || ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 || ::bind(socket.get(), address.get(), address.length) != 0)
    return Status(Errc::io_error, describe(where, errno));
  return socket;
}

Result<UniqueFd> open_at(const job::BindPort& where) {
  auto socket = bind_at(where);
  Status status = socket.status();
  if (status.ok() && ::listen(socket.value().get(), kBacklog) != 0) status = Status(Errc::io_error, describe(where, errno));
  if (status.ok()) return socket;
  return Status(Errc::io_error,
                fmt::format("cannot listen on {} port {} for the ranks to meet: {}", where.host, where.port, status.text()));
}

}  // namespace

UniqueFd hold_port(const job::BindPort& where) {
  auto socket = bind_at(where);
  return socket.ok() ? std::move(socket).value() : UniqueFd();
}

Result<UniqueFd> open_coordinator_socket(const job::BindPort& where) {
  job::BindPort tried = where;
  for (;; ++tried.port) {
    auto socket = open_at(tried);
    if (socket.ok() || tried.port >= where.last_port) return socket;
  }
}

}  // namespace ringlet::launch
