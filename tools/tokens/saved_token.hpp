#pragma once

#include <optional>
#include <string>

#include "tools/tokens/private_folder.hpp"

namespace ringlet::tokens {

// Tokens are saved for this user in $XDG_CONFIG_HOME/ringlet/tokens/GROUP, by default in ~/.config, and no other user can read them.

/// Returns why `group` cannot name a saved token, or nothing if it can. A name has 1 to 64 bytes of UTF-8 without '/', control characters
/// or a leading '.'.
std::optional<std::string> find_group_mistake(const std::string& group);

/// Returns the path of the group's token, whether it exists or not. Throws `InvalidArgument` if the name is not allowed or no home is
/// known.
std::string saved_token_path(const std::string& group, const Variables& variables);

/// Returns the saved token, or nothing if there is none. Throws `InvalidArgument` with the path and what to do if it cannot be read, is not
/// a token, or may be read or replaced by other users.
std::optional<std::string> load_token(const std::string& group, const Variables& variables);

/// Writes the token so that at any time either all of it or nothing is there. Returns false if a token exists and may not be replaced.
/// Throws `InvalidArgument` with the path and the reason if the token cannot be stored safely, or is not a token.
bool save_token(const std::string& group, const std::string& token, Replace replace, const Variables& variables);

}  // namespace ringlet::tokens
