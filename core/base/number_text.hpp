#pragma once

#include <cstdio>
#include <string>

namespace ringlet {

/// As short as it can be: 0.1, 1e-08.
inline std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

}  // namespace ringlet
