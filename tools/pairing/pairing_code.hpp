#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

inline constexpr std::size_t kLeastDigits = 6, kMostDigits = 8;

/// Fills its argument with bytes that nobody can foretell.
using FillRandom = std::function<void(Bytes)>;

/// The system's randomness.
void fill_random(Bytes out);

/// So many digits, each code as likely as any other.
Secret make_code(std::size_t digits, const FillRandom& random);

/// As a person reads it: "4821 7305".
std::string spaced_code(const Secret& code);

/// What a person has typed: digits, with spaces and dashes anywhere between. Nothing where it cannot be a code.
std::optional<Secret> read_code(std::string_view typed);

}  // namespace ringlet::pairing
