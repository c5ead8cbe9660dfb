#pragma once

#include <string>

#include "core/wire/frame.hpp"

namespace ringlet::test {

/// Returns the preface of a rank whose links are encrypted.
inline std::string preface_text() {
  std::string text("RNGL\0\0\1\0", kPrefaceBytes);
  text[4] = static_cast<char>(kWireVersion & 0xff);
  text[5] = static_cast<char>(kWireVersion >> 8);
  return text;
}

}  // namespace ringlet::test
