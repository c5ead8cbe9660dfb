#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace train_text {

/// Which ranks' parameters, given by their hashes, are not those of most ranks after `steps` steps, in a sentence; empty if all are alike.
std::string different_hashes(std::span<const std::uint64_t> hashes, int steps);

}  // namespace train_text
