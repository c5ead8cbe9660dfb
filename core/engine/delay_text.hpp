#pragma once

#include <ringlet/delay.hpp>
#include <string>

#include "core/base/time.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// A duration in seconds: "10.0 s".
std::string seconds_text(Duration duration);
/// An operation's name for texts: "all_reduce(sum, f32 x 1000, ring) number 41", with the stream if it is not 0 and the group if it is not
/// the world.
std::string name_of(const wire::OperationState& operation);
/// A number of bytes out of all: "3.0 of 8.0 MiB".
std::string progress_text(std::uint64_t bytes, std::uint64_t of_bytes);
/// Describes a rank that has not called `operation`, for which another rank waits: "computes since its barrier number 40 ended 12.1 s ago".
std::string describe_absent(const wire::RankState& state, const wire::OperationState& operation);
/// Describes a rank that has called `operation`: "has called it, 3.0 of 8.0 MiB received".
std::string describe_present(const wire::OperationState& operation);
/// Makes the text of `delay` from its other fields. `slowest` describes the rank that has received the smallest share, for the case that
/// all ranks have called the operation; it may be empty.
std::string describe_delay(const Delay& delay, const std::string& slowest);

}  // namespace ringlet
