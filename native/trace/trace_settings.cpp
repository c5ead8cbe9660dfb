#include "native/trace/trace_settings.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "core/base/refuse.hpp"

namespace ringlet::native {

namespace {

/// "7:2049:1234": the descriptor, and the numbers of the file's device and of the file.
GivenTraceFile parse_given_file(const Setting& setting) {
  std::array<std::uint64_t, 3> numbers{};
  const char* at = setting.value.data();
  const char* const end = at + setting.value.size();
  for (std::uint64_t& number : numbers) {
    const auto [stop, error] = std::from_chars(at, end, number);
    const bool is_last = &number == &numbers.back();
    if (error != std::errc() || (is_last ? stop != end : stop == end || *stop != ':') || numbers[0] > 1 << 20)
      refuse(fmt::format("{} is '{}'; a launcher sets it to a descriptor and two numbers of its file, such as 7:2049:1234", setting.name,
                         setting.value));
    at = stop + 1;
  }
  return {static_cast<int>(numbers[0]), numbers[1], numbers[2]};
}

}  // namespace

TraceSettings read_trace_settings(const InitOptions& options, const Variables& variables) {
  TraceSettings settings;
  if (const auto file = text_setting(options.trace, "InitOptions::trace", variables, {"RINGLET_TRACE"})) {
    settings.file = file->value;
    if (!options.trace) settings.variable = file->name;
  }
  if (const auto given = first_set(variables, {"RINGLET_TRACE_FD"})) settings.given_file = parse_given_file(*given);
  if (const auto limit = first_set(variables, {"RINGLET_TRACE_MIB"}))
    settings.most_bytes = static_cast<std::size_t>(parse_integer(*limit, 1, 1 << 20)) << 20;
  return settings;
}

}  // namespace ringlet::native
