#pragma once

#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "core/base/refuse.hpp"

namespace ringlet::native {

/// What was set, and where it comes from ("RINGLET_LISTEN", "InitOptions::listen"), for messages.
struct Setting {
  std::string name;
  std::string value;
};

/// Throws `InvalidArgument`.
}  // namespace ringlet::native
