#pragma once

#include <string_view>

namespace ringlet::command {

/// Writes `text` to standard output at once. If that fails, remembers why, and writes nothing from then on. All that the command itself
/// prints there goes through this function. Belongs to the main thread.
void print_out(std::string_view text);

/// Tells whether something could not be written. A command that runs until a signal comes ends then, too.
bool is_output_lost() noexcept;

/// Returns `exit_code`. If something could not be written, says so on stderr and returns 1 instead, or 128 + SIGPIPE if the reader went
/// away.
int check_output(int exit_code);

}  // namespace ringlet::command
