#pragma once

#include <cstdio>
#include <string>

namespace ringlet {

/// The number in its shortest form, with up to 12 significant digits: 0.1, 1e-08.
inline std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

}  // namespace ringlet
