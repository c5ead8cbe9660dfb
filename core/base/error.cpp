#include <ringlet/error.hpp>

namespace ringlet {

void throw_if_failed(const Status& status) {
  switch (status.code()) {
    case Errc::ok:
      return;
    case Errc::invalid_argument:
      throw InvalidArgument(status);
    case Errc::mismatch:
      throw MismatchError(status);
    case Errc::peer_lost:
      throw PeerLost(status);
    case Errc::timed_out:
      throw Timeout(status);
    case Errc::protocol_error:
      throw ProtocolError(status);
    case Errc::cancelled:
      throw Cancelled(status);
    case Errc::io_error:
      throw IoError(status);
  }
  throw Error(status);
}

}  // namespace ringlet
