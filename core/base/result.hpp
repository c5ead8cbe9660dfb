#pragma once

#include <ringlet/status.hpp>
#include <utility>
#include <variant>

namespace ringlet {

/// A value, or the status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status failure) : state_(std::move(failure)) {}

  bool ok() const noexcept { return std::holds_alternative<T>(state_); }
  /// The value; call it only if ok().
  T& value() & { return *std::get_if<T>(&state_); }
  const T& value() const& { return *std::get_if<T>(&state_); }
  T&& value() && { return std::move(*std::get_if<T>(&state_)); }
  /// The failure, or an ok status if there is a value.
  Status status() const { return ok() ? Status{} : *std::get_if<Status>(&state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace ringlet
