#pragma once

#include <string>
#include <string_view>

namespace ringlet {

/// Tells whether a terminal, a log and a page show this text as what it is: valid UTF-8 without characters that control a terminal (C0, C1,
/// DEL, so also no line break) or line separators, that turn the direction of writing, or that cannot be seen (zero width, soft hyphen,
/// tags).
bool is_printable(std::string_view text);

/// Replaces each byte and character that is_printable() refuses by '?'. All text that comes from elsewhere passes here before anything
/// else sees it.
std::string printable(std::string_view text);

/// The longest beginning of a valid UTF-8 text that has at most `most` bytes and ends between characters.
std::string_view cut_text(std::string_view text, std::size_t most);

}  // namespace ringlet
