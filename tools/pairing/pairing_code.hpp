#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

inline constexpr std::size_t kLeastDigits = 6, kMaxDigits = 8;

/// Fills its argument with unpredictable bytes.
using FillRandom = std::function<void(Bytes)>;

/// Fills `out` from the system's random source.
void fill_random(Bytes out);

/// Returns a code of `digits` digits. All codes are equally likely.
Secret make_code(std::size_t digits, const FillRandom& random);

/// Returns the code as people read it: "4821 7305".
std::string spaced_code(const Secret& code);

/// Reads a typed code: digits, with spaces and dashes anywhere between them. Returns nothing if it cannot be a code.
std::optional<Secret> read_code(std::string_view typed);

}  // namespace ringlet::pairing
