#pragma once

#include <ringlet/detail/language.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ringlet {

/// What kind of thing went wrong. The numbers are part of the C API: append only.
enum class Errc : std::uint8_t {
  ok = 0,                ///< nothing
  invalid_argument = 1,  ///< the caller's mistake; returned before any byte moves
  mismatch = 2,          ///< ranks disagree about a call
  peer_lost = 3,         ///< a rank died, was cut off, or left
  timed_out = 4,         ///< a deadline passed
  protocol_error = 5,    ///< a peer sent what it may not send
  cancelled = 6,         ///< the group was closed under the call
  io_error = 7,          ///< a file cannot be read or written, or is damaged
};

/// "ok", "invalid_argument", ...; for logs.
std::string_view name_of(Errc code) noexcept;

/// The result of an operation: a code, the rank that caused it (-1 where none did), and one sentence for a person.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;
  /// `rank`: the culprit's, in the world.
  Status(Errc code, std::string text, int rank = -1) : code_(code), rank_(rank), text_(std::move(text)) {}

  /// Whether the code is Errc::ok.
  bool ok() const noexcept { return code_ == Errc::ok; }
  /// What kind of thing went wrong.
  Errc code() const noexcept { return code_; }
  /// The rank that caused it, always counted in the world, whichever group failed; -1 where none did or none is known.
  int rank() const noexcept { return rank_; }
  /// What was wrong, with which value, and what to do; empty where all went well.
  const std::string& text() const noexcept { return text_; }

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Errc code_ = Errc::ok;
  int rank_ = -1;
  std::string text_;
};

}  // namespace ringlet
