#include "tools/trace/summary.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/ports/trace.hpp"
#include "tools/trace/intervals.hpp"
#include "tools/trace/trace_part.hpp"
#include "tools/trace/trace_reader.hpp"

namespace ringlet::trace {

namespace {

using Json = nlohmann::ordered_json;

/// One process' moments.
class RankTimes {
 public:
  explicit RankTimes(std::optional<std::string> within) : within_(std::move(within)) {}

  void take(const Json& event) {
    if (is_metadata(event, "process_name")) name = text_in(event["args"], "name");
    if (event["ph"] != "X") return;
    const std::int64_t begin = time_in(event, "ts");
    add(text_in(event, "cat"), text_in(event, "name"), begin, begin + time_in(event, "dur"));
  }

  bool empty() const { return all_.empty(); }
  bool has_limit() const { return !limit_.empty(); }

  RankSummary sum() {
    RankSummary result;
    result.name = std::move(name);
    if (!within_) limit_.add(all_.first(), all_.last());
    result.seconds = seconds(limit_.length());
    Intervals waits = Intervals::both(waits_, limit_), own = Intervals::both(own_, limit_);
    result.waited = seconds(waits.length());
    result.computed = seconds(own.length() - Intervals::both(own, waits).length());
    result.collectives = moved(collectives_, waits);
    result.buckets = moved(buckets_, waits);
    for (auto& [span, moments] : spans_) {
      RankSummary::Spans& spans = result.spans[span];
      for (const auto& [begin, end] : moments) {
        if (!limit_.contains(begin, end)) continue;
        ++spans.count;
        spans.seconds += seconds(end - begin);
      }
    }
    std::erase_if(result.spans, [](const auto& entry) { return entry.second.count == 0; });
    return result;
  }

  std::string name;

 private:
  static double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

  void add(const std::string& category, const std::string& span, std::int64_t begin, std::int64_t end) {
    if (category == kCollectiveCategory || category == kBucketCategory) collectives_.add(begin, end);
    if (category == kBucketCategory) buckets_.add(begin, end);
    if (category == kWaitCategory) waits_.add(begin, end);
    if (category == kProgramCategory) {
      own_.add(begin, end);
      spans_[span].emplace_back(begin, end);
      if (within_ == span) limit_.add(begin, end);
    }
    all_.add(begin, end);
  }

  RankSummary::Moved moved(Intervals& moments, Intervals& waits) {
    Intervals inside = Intervals::both(moments, limit_);
    const std::int64_t length = inside.length();
    return {seconds(length), seconds(length - Intervals::both(inside, waits).length())};
  }

  const std::optional<std::string> within_;
  Intervals all_, own_, waits_, collectives_, buckets_, limit_;
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> spans_;
};

}  // namespace

Summary summarize(const std::string& path, const std::optional<std::string>& within) {
  Summary summary;
  std::vector<std::int64_t> order;
  std::map<std::int64_t, RankTimes> processes;
  TraceReader reader(path);
  while (reader.next()) {
    const Json event = reader.event();
    summary.dropped += dropped_in(event);
    const auto [found, is_new] = processes.try_emplace(number_in(event, "pid"), within);
    if (is_new) order.push_back(found->first);
    found->second.take(event);
  }
  for (const std::int64_t process : order) {
    RankTimes& times = processes.at(process);
    if (times.empty() || (within && !times.has_limit())) continue;
    summary.ranks.push_back(times.sum());
    summary.ranks.back().process = process;
  }
  if (!summary.ranks.empty()) return summary;
  if (within) throw std::runtime_error(fmt::format("'{}' has no span of the program's own that is called '{}'", path, *within));
  throw std::runtime_error(fmt::format("'{}' is a trace in which nothing happened", path));
}

}  // namespace ringlet::trace
