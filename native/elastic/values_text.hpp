#pragma once

#include <map>
#include <ringlet/checkpoint.hpp>
#include <ringlet/group.hpp>
#include <string>

namespace ringlet::native {

/// A checkpoint's values as ranks hand them over, of each its type and its text. Browsers write the same (wasm/src/state_values.ts).
///@{
std::string values_text(const Checkpoint& state);
/// Throws a `ProtocolError` that blames `giver`, the rank of the group that has sent it, where it is none of that form.
std::map<std::string, CheckpointValue, std::less<>> parse_values(const Group& group, int giver, const std::string& text);
///@}

}  // namespace ringlet::native
