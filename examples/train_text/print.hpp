#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace train_text {

/// Writes what people read while the program trains. What cannot be written is lost: a full disk, or a reader that has gone, is no reason
/// to stop training.
template <class... Arguments>
void print(std::FILE* out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

}  // namespace train_text
