#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringlet::trace {

/// What one process did with its time. Sums are of moments and not of spans: where two overlap, a moment counts once.
struct RankSummary {
  std::int64_t process = 0;  // its number in the file, which for most is its rank
  std::string name{};        // "rank 0 (host, program, pid 4711)"
  double seconds = 0;        // from its first span to its last, or in the spans that all is limited to
  double waited = 0;         // at least one of its threads waited for others
  double computed = 0;       // it was in a span of the program's own, and did not wait
  struct Moved {
    double seconds = 0;  // at least one was under way
    double hidden = 0;   // of that, without a thread that waited
  };
  Moved collectives{}, buckets{};
  struct Spans {
    std::uint64_t count = 0;
    double seconds = 0;  // sum of their lengths
  };
  std::map<std::string, Spans> spans{};  // the program's own, by name
};

struct Summary {
  std::vector<RankSummary> ranks{};  // in the order of their first event
  std::uint64_t dropped = 0;         // events that the trace lacks, as far as it says so
};

/// Reads a merged trace, or one rank's part. With `within` only what lies within the program's spans of that name counts, such as "step".
/// Throws `std::runtime_error` where the file cannot be read, is no trace, or has no such spans.
Summary summarize(const std::string& path, const std::optional<std::string>& within);

}  // namespace ringlet::trace
