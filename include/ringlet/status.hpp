#pragma once

#include <ringlet/detail/language.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ringlet {

/// The kind of an error. The numbers are part of the C API: append only.
enum class Errc : std::uint8_t {
  ok = 0,                ///< no error
  invalid_argument = 1,  ///< the caller's mistake; returned before any byte moves
  mismatch = 2,          ///< ranks disagree about a call
  peer_lost = 3,         ///< a rank died, was cut off, or left
  timed_out = 4,         ///< a deadline passed
  protocol_error = 5,    ///< a peer sent something that the protocol does not allow
  cancelled = 6,         ///< the group was closed while the call was running
  io_error = 7,          ///< a file cannot be read or written, or is damaged, or the system has no descriptors left
};

/// The name of the code for logs: "ok", "invalid_argument", ...
std::string_view name_of(Errc code) noexcept;

/// The result of an operation: a code, the rank that caused an error (-1 if none did), and one sentence for a person.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;
  /// An error; `rank` is the rank in the world that caused it.
  Status(Errc code, std::string text, int rank = -1) : code_(code), rank_(rank), text_(std::move(text)) {}

  /// Whether the code is Errc::ok.
  bool ok() const noexcept { return code_ == Errc::ok; }
  /// The kind of the error.
  Errc code() const noexcept { return code_; }
  /// The rank that caused the error, always numbered in the world, whichever group failed; -1 if there is none or it is unknown.
  int rank() const noexcept { return rank_; }
  /// Says what was wrong, with which value, and what to do; empty if the status is ok.
  const std::string& text() const noexcept { return text_; }

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Errc code_ = Errc::ok;
  int rank_ = -1;
  std::string text_;
};

}  // namespace ringlet
