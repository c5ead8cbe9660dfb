#pragma once

#include <ringlet/error.hpp>
#include <string>
#include <utility>

// For mistakes of the caller, found before anything is sent. The text names the invalid value.
namespace ringlet {

inline Status invalid(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

/// Throws an `InvalidArgument` with this text.
[[noreturn]] inline void refuse(std::string text) { throw InvalidArgument(invalid(std::move(text))); }

}  // namespace ringlet
