#pragma once

#include <ringlet/status.hpp>
#include <stdexcept>

namespace ringlet {

/// What the blocking calls throw. `what()` is the status' text; `status()` names the rank.
class Error : public std::runtime_error {
 public:
  /// Of a status that is not ok.
  explicit Error(Status status) : std::runtime_error(status.text()), status_(std::move(status)) {}
  /// Code, rank and text, as Work::status() gives them.
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Errc::invalid_argument: the caller's mistake. Nothing has moved and the group lives on.
class InvalidArgument : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};
/// Errc::mismatch: ranks disagree about a call; every rank gets it, and the text says what each of them called. Of a collective it ends
/// the world; of a message, or of trees that are compared first, it does not.
class MismatchError : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};
/// Errc::peer_lost: a rank died, was cut off, or left. It ends the world.
class PeerLost : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};
/// Errc::timed_out: an operation's or the meeting's deadline passed. It ends the world.
class Timeout : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};
/// Errc::protocol_error: a peer sent what it may not send. It ends the world.
class ProtocolError : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};
/// Errc::cancelled: the group was closed under the call.
class Cancelled : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};
/// Errc::io_error: a file cannot be read or written, or is damaged.
class IoError : public Error {
 public:
  /// Of a status with this code.
  using Error::Error;
};

/// Throws the subclass of `Error` that fits the status' code; does nothing where the status is ok.
void throw_if_failed(const Status& status);

}  // namespace ringlet
