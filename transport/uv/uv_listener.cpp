#include "transport/uv/uv_listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>

#include <cerrno>
#include <utility>

#include "transport/uv/listen_socket.hpp"
#include "transport/uv/socket.hpp"
#include "transport/uv/uv_link.hpp"

namespace ringlet::uv {
namespace {

constexpr int kBacklog = 128;
class UvListener final : public Listener {
 public:
  explicit UvListener(ListenSocket& socket) : socket_(socket), address_(to_address(local_address(socket.socket()))) {}
  ~UvListener() override { socket_.abandon(); }
  Address address() const override { return address_; }

 private:
  ListenSocket& socket_;
  Address address_;
};

Status cannot_listen(const Address& address, int error) {
  const auto name = to_string(address);
  const auto fail = [](std::string text) { return Status{Errc::invalid_argument, std::move(text)}; };
  if (error == EADDRINUSE) return fail(name + " is in use by another program; choose another port");
  if (error == EADDRNOTAVAIL)
    return fail(address.host + " is not an address of this machine (to listen on " + name + "); choose one that is");
  if (error == EACCES) return fail("this user may not listen on " + name + "; choose a port above 1023");
  return fail("cannot listen on " + name + ": " + describe_error(error));
}

/// Returns the errno of the step that failed, or 0.
int bind_and_listen(int socket, const SocketAddress& address) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket, address.get(), address.length) != 0) return errno;
  return ::listen(socket, kBacklog) == 0 ? 0 : errno;
}

/// Gives the socket to a listener and returns 0, or returns a uv error.
int watch_socket(LoopState& loop, UniqueFd socket, Acceptor on_accept, std::unique_ptr<Listener>& listener) {
  auto* state = new ListenSocket(loop, [&loop, on_accept = std::move(on_accept)](int accepted) {
    auto link = open_link(loop, accepted);
    if (link.ok()) on_accept(std::move(link).value());
  });
  const int error = state->open(socket.get());
  if (error != 0) {
    state->drop();
    return error;
  }
  (void)socket.release();
  listener = std::make_unique<UvListener>(*state);
  return 0;
}

Status not_adoptable(int number, const std::string& reason) {
  return {Errc::invalid_argument, "descriptor " + std::to_string(number) + " cannot be listened on: " + reason};
}

}  // namespace

Result<std::unique_ptr<Listener>> open_listener(LoopState& loop, const Address& address, Acceptor on_accept) {
  const auto found = numeric_addresses(address);
  if (found.empty())
    return Status{Errc::invalid_argument,
                  "cannot listen on \"" + address.host + "\": it is neither a numeric address of this machine nor localhost"};
  UniqueFd socket(open_stream_socket(found.front().family()));
  if (!socket) return cannot_listen(address, errno);
  int error = bind_and_listen(socket.get(), found.front());
  std::unique_ptr<Listener> listener;
  if (error == 0) error = -watch_socket(loop, std::move(socket), std::move(on_accept), listener);
  if (error != 0) return cannot_listen(address, error);
  return Result<std::unique_ptr<Listener>>(std::move(listener));
}

Result<std::unique_ptr<Listener>> adopt_listener(LoopState& loop, UniqueFd socket, Acceptor on_accept) {
  const int number = socket.get();
  int listens = 0;
  socklen_t length = sizeof listens;
  if (getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0)
    return not_adoptable(number, errno == EBADF ? "it is not open" : "it is not a socket");
  if (listens == 0) return not_adoptable(number, "the socket does not listen yet; call listen() on it first");
  const int family = local_address(number).family();
  if (family != AF_INET && family != AF_INET6) return not_adoptable(number, "the socket is not for TCP over IPv4 or IPv6");
  // The descriptor was inherited, and child processes of this process must not inherit it again.
  fcntl(number, F_SETFD, FD_CLOEXEC);
  std::unique_ptr<Listener> listener;
  if (const int error = watch_socket(loop, std::move(socket), std::move(on_accept), listener); error != 0)
    return not_adoptable(number, uv_strerror(error));
  return Result<std::unique_ptr<Listener>>(std::move(listener));
}

}  // namespace ringlet::uv
