#pragma once

#include <ringlet/delay.hpp>
#include <string>

#include "core/base/time.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// "10.0 s".
std::string seconds_text(Duration duration);
/// "all_reduce(sum, f32 x 1000, ring) number 41", with stream and group where they are not the first.
std::string name_of(const wire::OperationState& operation);
/// "3.0 of 8.0 MiB".
std::string progress_text(std::uint64_t bytes, std::uint64_t of_bytes);
/// What a rank does that `operation` of another waits for: "computes since its barrier number 40 ended 12.1 s ago".
std::string describe_absent(const wire::RankState& state, const wire::OperationState& operation);
/// The same of one that is in the operation: "has called it, 3.0 of 8.0 MiB received".
std::string describe_present(const wire::OperationState& operation);
/// The line for people, from all other fields. `slowest`: where all have called it, the one that is least far, and how far; or nothing.
std::string describe_delay(const Delay& delay, const std::string& slowest);

}  // namespace ringlet
