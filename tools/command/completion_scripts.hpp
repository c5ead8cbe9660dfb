#pragma once

#include <span>
#include <string>

#include "tools/command/command_words.hpp"

namespace ringlet::command {

/// Scripts that make a shell complete `ringlet`'s words; the shell sources them, or finds them under the command's name in its own folders.
std::string bash_completion(std::span<const CommandWords> commands);
std::string zsh_completion(std::span<const CommandWords> commands);
std::string fish_completion(std::span<const CommandWords> commands);

}  // namespace ringlet::command
