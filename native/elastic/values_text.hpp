#pragma once

#include <map>
#include <ringlet/checkpoint.hpp>
#include <string>

namespace ringlet::native {

/// A checkpoint's values as ranks hand them over, of each its type and its text. Browsers write the same (wasm/src/state_values.ts).
///@{
std::string values_text(const Checkpoint& state);
/// Throws where it is none of that form.
std::map<std::string, CheckpointValue, std::less<>> parse_values(const std::string& text);
///@}

}  // namespace ringlet::native
