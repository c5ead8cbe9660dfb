#pragma once

#include <span>
#include <string>

#include "tools/command/command_words.hpp"

namespace ringlet::command {

/// Return scripts that make a shell complete `ringlet`'s words. The shell sources them, or finds them under the command's name in its
/// folders.
std::string bash_completion(std::span<const CommandWords> commands);
std::string zsh_completion(std::span<const CommandWords> commands);
std::string fish_completion(std::span<const CommandWords> commands);

}  // namespace ringlet::command
