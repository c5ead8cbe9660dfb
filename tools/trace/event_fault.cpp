#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tools/trace/clock_map.hpp"
#include "tools/trace/trace_reader.hpp"

namespace ringlet::trace {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max(), kMaxUint32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;  // above it parsers of JSON round

/// Looks for what is wrong with members of an object, and keeps the first.
class MemberCheck {
 public:
  explicit MemberCheck(const Json& object) : object_(object) {}

  bool has(const char* name) const { return object_.contains(name); }
  void text(const char* name) {
    if (const Json* found = find(name); found == nullptr || !found->is_string()) note(name, "a text");
  }
  void object(const char* name) {
    if (const Json* found = find(name); found == nullptr || !found->is_object()) note(name, "an object");
  }
  void whole(const char* name, std::int64_t least, std::int64_t most) {
    const Json* found = find(name);
    const bool fits_int64 = found != nullptr && found->is_number_integer() &&
                            (!found->is_number_unsigned() || found->get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
    if (!fits_int64 || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most)
      note(name, fmt::format("a whole number from {} to {}", least, most));
  }
  void microseconds(const char* name, std::int64_t least_ns) {
    const double least = static_cast<double>(least_ns) / 1000, most = static_cast<double>(kMaxTimeNs) / 1000;
    const Json* found = find(name);
    if (found == nullptr || !found->is_number() || !(found->get<double>() >= least && found->get<double>() <= most))
      note(name, fmt::format("a number of microseconds from {} to {}", least, most));
  }
  const std::optional<std::string>& fault() const { return fault_; }

 private:
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void note(const char* name, std::string_view wanted) {
    if (!fault_) fault_ = fmt::format("its \"{}\" has to be {}", name, wanted);
  }

  const Json& object_;
  std::optional<std::string> fault_;
};

/// Of those events whose arguments mean something to the readers of traces.
std::optional<std::string> find_fault_in_arguments(const std::string& name, const std::string& phase, const Json& arguments) {
  MemberCheck check(arguments);
  if (phase == "M" && name == "ringlet_trace") {
    check.text("clock");
    if (check.has("began_ms")) check.whole("began_ms", 0, kMaxCount);
  } else if (phase == "M" && name == "ringlet_trace_end") {
    for (const char* by : {"dropped_by_threads", "dropped_by_file"}) check.whole(by, 0, kMaxCount);
  } else if (phase == "M" && name == "process_name") {
    check.text("name");
  } else if (phase == "i" && check.has("lineage")) {
    check.text("lineage");
    if (check.has("job")) check.text("job");
    check.whole("epoch", 0, kMaxUint32);
    check.whole("rank", 0, kMaxInt32);
  } else if (phase == "i" && name == "clock") {
    check.whole("epoch", 0, kMaxUint32);
    check.whole("offset_ns", -kMaxTimeNs, kMaxTimeNs);
    check.whole("error_ns", 0, kMaxTimeNs);
  }
  return check.fault();
}

}  // namespace

std::optional<std::string> find_fault(const Json& event) {
  if (!event.is_object()) return "it is no JSON object";
  MemberCheck check(event);
  check.text("name");
  check.text("ph");
  check.whole("pid", 0, kMaxInt32);
  if (check.fault()) return check.fault();
  const auto name = event["name"].get<std::string>(), phase = event["ph"].get<std::string>();
  if (phase.size() != 1) return "its \"ph\" has to be one letter";
  if (phase != "M") check.microseconds("ts", -kMaxTimeNs);
  if (phase == "X") check.microseconds("dur", 0);
  if (phase == "b" || phase == "e") check.object("id2");
  if (phase == "M" || check.has("args")) check.object("args");
  if (check.fault() || !check.has("args")) return check.fault();
  return find_fault_in_arguments(name, phase, event["args"]);
}

}  // namespace ringlet::trace
