#pragma once

#include <string>

namespace ringlet::native {

/// Writes a line for people to stderr, with the rank's number before it, by one call, so that lines of several ranks do not mix. What
/// cannot be written is lost. Any thread.
void tell(int rank, const std::string& text);
/// The same of a process whose rank may change.
void tell(const std::string& text);

}  // namespace ringlet::native
