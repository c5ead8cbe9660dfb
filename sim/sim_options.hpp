#pragma once

#include <cstdint>
#include <optional>

#include "core/base/time.hpp"

namespace ringlet {

/// The values from `least` to `most`, both included.
template <class T>
struct Range {
  T least{};
  T most{};
};

/// The properties of one direction between two simulated nodes. Each new link draws its own values from the ranges; existing links keep
/// theirs.
struct PathOptions {
  Range<Duration> latency{Duration::microseconds(20), Duration::microseconds(200)};
  Duration jitter = Duration::microseconds(30);  // at most this much is added to each delivery; order is kept
  Range<std::uint64_t> bytes_per_second{20'000'000, 1'000'000'000};
  Range<std::uint64_t> send_buffer_bytes{1024, 65536};
  Range<std::uint64_t> receive_buffer_bytes{1024, 65536};
  /// How often per thousand a piece is cut short: when it is accepted from the sender, when it is sent, and when it is handed to the
  /// receiver.
  Range<std::uint32_t> split_per_mille{0, 300};

  /// How often per thousand the direction stalls before a piece leaves, for a time drawn from `stall`.
  std::uint32_t stall_per_mille = 0;
  Range<Duration> stall{Duration::milliseconds(1), Duration::milliseconds(200)};
  /// The link is reset at both ends when exactly this many bytes have arrived in this direction.
  std::optional<Range<std::uint64_t>> reset_at_byte;

  /// How many dials of a thousand in this direction fail. A dial that hangs ends with its timeout.
  std::uint32_t dial_refused_per_mille = 0;
  std::uint32_t dial_hangs_per_mille = 0;
  Range<Duration> dial_delay{};

  /// Options without cut pieces or jitter and with buffers of 64 KiB, for tests that count.
  static PathOptions calm() {
    PathOptions options;
    options.latency = {Duration::microseconds(50), Duration::microseconds(50)};
    options.jitter = {};
    options.bytes_per_second = {1'000'000'000, 1'000'000'000};
    options.send_buffer_bytes = options.receive_buffer_bytes = {65536, 65536};
    options.split_per_mille = {0, 0};
    return options;
  }
};

struct SimOptions {
  std::uint64_t seed = 0;
  /// The options of every path for which SimWorld::path() was not called.
  PathOptions paths;
  /// The time between a cause on a node (a deferred task or a wake) and its callback.
  Range<Duration> loop_delay{{}, Duration::microseconds(2)};
};

/// The limits that end a run early.
struct RunLimits {
  std::uint64_t events = 50'000'000;
  Duration time = Duration::seconds(3600);  // virtual, from the start of the run
};

enum class RunEnd : std::uint8_t { idle, done, event_limit, time_limit };

}  // namespace ringlet
