#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/base/address.hpp"

namespace ringlet::uv {

/// A numeric address in the system's form.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  int family() const noexcept { return storage.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

/// The addresses of a numeric host or of "localhost" (127.0.0.1, then ::1); empty for any other name. Asks no name service.
std::vector<SocketAddress> numeric_addresses(const Address& address);
/// The host in numbers, with the scope of a link-local address, and the port.
Address to_address(const SocketAddress& address);
SocketAddress local_address(int socket);
SocketAddress remote_address(int socket);
bool is_loopback(const SocketAddress& address);
/// Whether both ends of the connection are one socket: a dial of a free local port can connect to itself by chance.
bool connected_to_itself(int socket);
/// Takes and clears the socket's pending error; an errno, or 0.
int take_error(int socket);
/// "connection refused", for an errno.
std::string describe_error(int error);
/// Sets the options of a connected socket. Those that the system refuses are left out, since they only make it faster.
void set_stream_options(int socket);

// These differ by platform (socket_linux.cpp, socket_darwin.cpp, socket_portable.cpp).

/// Flags for sending, with which a closed connection raises no SIGPIPE.
extern const int kSendFlags;
/// A TCP socket that does not block and that child processes do not inherit; -1 and errno on failure.
int open_stream_socket(int family);
/// The socket of a listening socket's next connection, likewise; -1 and errno on failure.
int accept_stream_socket(int listener);
void set_platform_stream_options(int socket, bool same_machine);
/// A UDP socket, likewise. One of IPv6 does not take IPv4.
int open_datagram_socket(int family);
/// Lets several sockets of this machine have the same port, each of which hears what is sent to a multicast group. Called before the socket
/// is bound.
bool share_port(int socket);
/// Restricts the socket to the multicast groups that it has joined itself. Otherwise it hears all that any program of the machine has
/// joined.
void hear_own_groups_only(int socket, int family);

}  // namespace ringlet::uv
