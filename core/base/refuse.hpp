#pragma once

#include <ringlet/error.hpp>
#include <string>
#include <utility>

namespace ringlet {

/// Throws `InvalidArgument` with this text: the caller made a mistake, and nothing has been sent.
[[noreturn]] inline void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

}  // namespace ringlet
