#pragma once

#include <ringlet/status.hpp>
#include <stdexcept>

namespace ringlet {

/// What the blocking calls throw. `what()` is the status' text; `status()` names the rank.
class Error : public std::runtime_error {
 public:
  explicit Error(Status status) : std::runtime_error(status.text()), status_(std::move(status)) {}
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

class InvalidArgument : public Error {
 public:
  using Error::Error;
};
class MismatchError : public Error {
 public:
  using Error::Error;
};
class PeerLost : public Error {
 public:
  using Error::Error;
};
class Timeout : public Error {
 public:
  using Error::Error;
};
class ProtocolError : public Error {
 public:
  using Error::Error;
};
class Cancelled : public Error {
 public:
  using Error::Error;
};
class IoError : public Error {
 public:
  using Error::Error;
};

/// Throws the subclass of `Error` that fits the status' code; does nothing where the status is ok.
void throw_if_failed(const Status& status);

}  // namespace ringlet
