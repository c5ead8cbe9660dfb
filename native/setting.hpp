#pragma once

#include <ringlet/error.hpp>
#include <string>
#include <utility>

namespace ringlet::native {

/// What was set, and where it comes from ("RINGLET_LISTEN", "InitOptions::listen"), for messages.
struct Setting {
  std::string name;
  std::string value;
};

/// Throws `InvalidArgument`.
[[noreturn]] inline void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

}  // namespace ringlet::native
