#pragma once

#include <ringlet/error.hpp>
#include <string>
#include <utility>

// The caller made a mistake, and nothing has been sent. The text names the value at fault.
namespace ringlet {

inline Status invalid(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

/// Throws `InvalidArgument`.
[[noreturn]] inline void refuse(std::string text) { throw InvalidArgument(invalid(std::move(text))); }

}  // namespace ringlet
