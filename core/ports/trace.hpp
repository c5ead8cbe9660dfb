#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/time.hpp"

namespace ringlet {

/// Whether this build can keep a trace. A browser keeps none, and its package is small: the compiler leaves out there all that records.
#if defined(__EMSCRIPTEN__)
inline constexpr bool kCanTrace = false;
#else
inline constexpr bool kCanTrace = true;
#endif

/// What a record's time counts as, in the viewer and in sums (tools/trace/summary.hpp).
///@{
inline constexpr std::string_view kCollectiveCategory = "collective";  // but for buckets
inline constexpr std::string_view kBucketCategory = "bucket";          // a collective that averages gradients
inline constexpr std::string_view kGradientsCategory = "gradients";  // from a bucket's leaving until its gradients are back in their place
inline constexpr std::string_view kMessageCategory = "message";      // a send or receive of the program's, from its call to its end
inline constexpr std::string_view kSegmentCategory = "segment";
inline constexpr std::string_view kProgramCategory = "program";  // spans of the program's own
inline constexpr std::string_view kWaitCategory = "wait";
///@}

/// Something that took from `begin` to `end`. Texts have to live as long as the program.
struct TraceRecord {
  std::uint32_t track = 0;  // of Trace::add_track()
  std::string_view name;
  std::string_view category;
  Instant begin{}, end{};
  /// Whether records of this track may overlap, which all of it say alike. Those of other tracks lie within or beside each other.
  bool overlaps = false;
  bool failed = false;
  int peer = -1;            // rank in the world; -1: none
  std::uint64_t bytes = 0;  // 0: none
  /// From 0: of a collective in its stream; of a message among those from one rank to the other on the stream, and of a segment among those
  /// of the session, on both sides alike; of a bucket in the order of ends. A receive from any rank that found none has one among its like.
  std::uint64_t number = 0;
  std::string_view dtype{}, algorithm{};
};

/// What one exchange of messages said of rank 0's clock: when this rank's clock showed `at`, that one showed `at + offset`, give or take
/// `error`.
struct ClockReading {
  std::uint32_t epoch = 0;
  Instant at{};
  Duration offset{}, error{};
};

/// Takes down what this rank does when. Any thread; no call waits for the disk, allocates in the steady state, or fails.
class Trace {
 public:
  /// The clock of the records, at this instant; `EventLoop::now()` stands still within a callback.
  virtual Instant now() const = 0;
  /// Returns the number of the track of this name, which may be there already.
  virtual std::uint32_t add_track(const std::string& name) = 0;
  virtual void record(const TraceRecord& record) = 0;
  virtual void record(const ClockReading& reading) = 0;

 protected:
  ~Trace() = default;
};

/// The trace that options name, and in a build that keeps none a null that the compiler sees.
constexpr Trace* usable(Trace* trace) { return kCanTrace ? trace : nullptr; }

}  // namespace ringlet
