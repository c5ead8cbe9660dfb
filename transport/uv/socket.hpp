#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/ports/link.hpp"

namespace ringlet::uv {

/// A numeric address in the system's form.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  int family() const noexcept { return storage.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Returns the addresses of a numeric host, or of "localhost" (127.0.0.1, then ::1); empty for any other name. Asks no name service.
std::vector<SocketAddress> numeric_addresses(const Address& address);
/// Returns the numeric host, with the scope of a link-local address, and the port.
Address to_address(const SocketAddress& address);
SocketAddress local_address(int socket);
SocketAddress remote_address(int socket);
bool is_loopback(const SocketAddress& address);
/// Whether both ends of the connection are the same socket: dialling a free local port can connect a socket to itself by chance.
bool connected_to_itself(int socket);
/// Returns the socket's pending error as an errno, or 0, and clears it.
int take_error(int socket);
/// Returns the text for an errno, such as "connection refused".
std::string describe_error(int error);
/// Sets the options of a connected socket. An option that the system refuses is ignored, because it only makes the socket faster.
void set_stream_options(int socket);

// The following differ by platform (socket_linux.cpp, socket_darwin.cpp, socket_portable.cpp).

/// Flags for sending so that a closed connection raises no SIGPIPE.
extern const int kSendFlags;
/// The same for a socket that was not opened here, where flags do not do it. Ignores what is no socket.
void prevent_sigpipe(int socket);
/// Opens a TCP socket that does not block and that child processes do not inherit; -1 and errno on failure.
int open_stream_socket(int family);
/// Accepts a listening socket's next connection, as a socket with the same properties; -1 and errno on failure.
int accept_stream_socket(int listener);
void set_platform_stream_options(int socket, bool same_machine);
/// What the system counts of a TCP socket (send_counters_linux.cpp, send_counters_none.cpp); nothing where it does not.
std::optional<SendCounters> send_counters(int socket);
/// Opens a UDP socket with the same properties; -1 and errno on failure. An IPv6 socket does not receive IPv4.
int open_datagram_socket(int family);
/// Allows several sockets of this machine to bind the same port; each of them receives what is sent to a multicast group. Must be called
/// before the socket is bound.
bool share_port(int socket);
/// Restricts the socket to the multicast groups that it has joined itself. Otherwise it receives from all groups that any program of the
/// machine has joined.
void hear_own_groups_only(int socket, int family);

}  // namespace ringlet::uv
