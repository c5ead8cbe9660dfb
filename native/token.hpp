#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringlet::native {

/// Shorter tokens could be guessed.
inline constexpr std::size_t kLeastTokenCharacters = 16;

/// Returns the strong_token() of `text` without white space around it. Throws `InvalidArgument` that names `source`, and never the text,
/// where it is too short.
std::string check_token(const std::string& source, std::string_view text);

}  // namespace ringlet::native
