#pragma once

#include <optional>
#include <string>

#include "native/environment.hpp"

namespace ringlet::tokens {

using native::Variables;

// Tokens that are kept for this user: $XDG_CONFIG_HOME/ringlet/tokens/GROUP, by default in ~/.config, readable by nobody else.

/// Why `group` cannot name a saved token; nothing where it can: 1 to 64 bytes of UTF-8 without '/', control characters or a leading '.'.
std::optional<std::string> find_group_mistake(const std::string& group);

/// Where the group's token is, or would be. Throws `InvalidArgument` for a name that cannot be, or where no home is known.
std::string saved_token_path(const std::string& group, const Variables& variables);

/// The saved token; nothing where none is. Throws `InvalidArgument` with the path and what to do where it cannot be read, is not a token,
/// or where others may read or replace it.
std::optional<std::string> load_token(const std::string& group, const Variables& variables);

enum class Replace : bool { no, yes };

/// Writes the token so that at any instant the whole of it or nothing is there. False where there is one already that may not be replaced.
/// Throws `InvalidArgument` with the path and the reason where it cannot be kept safely, or is no token.
bool save_token(const std::string& group, const std::string& token, Replace replace, const Variables& variables);

}  // namespace ringlet::tokens
