#pragma once

#include <ringlet/status.hpp>
#include <stdexcept>

namespace ringlet {

/// The base of the errors that blocking calls throw. `what()` is the status' text; `status()` names the rank.
class Error : public std::runtime_error {
 public:
  /// Makes the error of a status that is not ok.
  explicit Error(Status status) : std::runtime_error(status.text()), status_(std::move(status)) {}
  /// The code, the rank and the text, as Work::status() gives them.
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Errc::invalid_argument: the caller's mistake. Nothing has moved and the group lives on.
class InvalidArgument : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};
/// Errc::mismatch: ranks disagree about a call. Every rank gets the error, and the text says what each of them called. A mismatch of a
/// collective ends the world; a mismatch of a message, or of trees that are compared first, does not.
class MismatchError : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};
/// Errc::peer_lost: a rank died, was cut off, or left. It ends the world.
class PeerLost : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};
/// Errc::timed_out: the deadline of an operation, or of the ranks' meeting, has passed. It ends the world.
class Timeout : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};
/// Errc::protocol_error: a peer sent something that the protocol does not allow. It ends the world.
class ProtocolError : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};
/// Errc::cancelled: the group was closed while the call was running.
class Cancelled : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};
/// Errc::io_error: a file cannot be read or written, or is damaged, or the system has no descriptors left.
class IoError : public Error {
 public:
  /// Makes the error of a status with this code.
  using Error::Error;
};

/// Throws the subclass of `Error` that fits the status' code. Does nothing if the status is ok.
void throw_if_failed(const Status& status);

}  // namespace ringlet
