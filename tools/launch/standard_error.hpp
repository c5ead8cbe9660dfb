#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace ringlet::launch {

/// Writes `text` for people to stderr by one call, so that lines of several threads and processes do not mix. What cannot be written is
/// lost, since a full disk, or a reader that has gone, is no reason to end a job. Any thread.
///@{
void print_error(std::string_view text);
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_error(std::string_view(fmt::format(format, std::forward<Arguments>(arguments)...)));
}
///@}

}  // namespace ringlet::launch
