#include "transport/uv/listen_socket.hpp"

#include <cerrno>

#include "transport/uv/socket.hpp"

namespace ringlet::uv {

namespace {

// Bounds the work of one turn if connections arrive faster than they are accepted. The loop reports the remaining ones again.
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kPauseWithoutDescriptors = Duration::milliseconds(100);

}  // namespace

int ListenSocket::open(int socket) {
  const int error = SocketWatch::open(socket);
  if (error == 0) set_interest(UV_READABLE);
  return error;
}

void ListenSocket::abandon() {
  // The loop may no longer exist if the socket has been closed.
  if (!closed() && resume_timer_ != 0) loop().cancel(resume_timer_);
  drop();
}

void ListenSocket::on_ready(int, bool) {
  for (int count = 0; count < kAcceptsPerTurn && !closed(); ++count) {
    const int accepted = accept_stream_socket(socket());
    if (accepted >= 0) {
      on_accept_(accepted);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
      return pause();
    }
  }
  // uv stops watching a socket when it reports an error on it, so watching is started again.
  set_interest(UV_READABLE);
}

void ListenSocket::pause() {
  set_interest(0);
  resume_timer_ = loop().after(kPauseWithoutDescriptors, [this] {
    resume_timer_ = 0;
    set_interest(UV_READABLE);
  });
}

}  // namespace ringlet::uv
