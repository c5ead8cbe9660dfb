#pragma once

#include <concepts>
#include <stdexcept>
#include <string>

namespace ringlet::test {

/// Throws if the condition is false. Ranks that run as threads use it, since Catch2's own assertions may not be used there.
inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}
/// For conditions that are checked for millions of elements: only a failure makes its text.
template <std::invocable What>
void expect(bool condition, What what) {
  if (!condition) throw std::runtime_error(what());
}

/// Returns the text of the `Failure` that `action` throws; anything else is an error.
template <class Failure, class Action>
std::string failure_of(Action action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  throw std::runtime_error("no failure");
}

}  // namespace ringlet::test
