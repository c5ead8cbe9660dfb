#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/base/address.hpp"

namespace ringlet::uv {

/// A numeric address as the system takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  int family() const noexcept { return storage.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

/// The addresses of a numeric host or of "localhost" (127.0.0.1, then ::1), without asking any name service; empty where it is neither.
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
/// What all connected sockets get. Options that the system refuses are left out: they only make it faster.
void set_stream_options(int socket);

// What differs by platform (socket_linux.cpp, socket_darwin.cpp).

/// Flags with which writing to a closed connection raises no SIGPIPE.
extern const int kSendFlags;
/// A TCP socket that does not block and is not inherited; -1 and errno on failure.
int open_stream_socket(int family);
/// The same for the next connection of a listening socket.
int accept_stream_socket(int listener);
void set_platform_stream_options(int socket, bool same_machine);
/// A UDP socket, likewise; of IPv6 alone where `family` says so.
int open_datagram_socket(int family);
/// Before it is bound: others of this machine may have the same port, and each hears what is sent to a group.
bool share_port(int socket);
/// From now on the socket hears multicast of those groups alone that it joins itself, not of all that the machine has joined.
void hear_own_groups_only(int socket, int family);

}  // namespace ringlet::uv
